// Vitest's global set-up of the end-to-end project: the bundle that the tests drive, and the types that the example is
// compiled against, are built from the present sources.
import { ensureBuiltWithTypes } from "./setup.mjs"

export const setup = () => ensureBuiltWithTypes()
