// Vitest's global set-up of the end-to-end project: the bundle that the tests drive is built from the present sources.
import { ensureBuilt } from "./setup.mjs"

export const setup = () => ensureBuilt()
