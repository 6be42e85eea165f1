/**
 * What the user must change before anything can run: one line that names the fault and what to do. Nothing was written.
 */
import { Schema } from "effect"

export class Refusal extends Schema.TaggedError<Refusal>()("Refusal", { message: Schema.String }) {}

export const refuse = (message: string): Refusal => new Refusal({ message })
