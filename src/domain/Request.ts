/**
 * `request.json`: everything that a run was asked for and may do, as it was when it began. A run is resumed and repeated
 * from here, so it names no secret and no place of its own.
 */
import { Schema } from "effect"
import { RecordedModels } from "./Event.ts"
import { SandboxKind } from "./SandboxRule.ts"
import { Task } from "./Task.ts"

export const RunRequest = Schema.Struct({
  schema_version: Schema.Literal(1),
  task: Task,
  models: RecordedModels,
  /** Whether a native provider's key may go to another host than its official one. */
  allow_custom_endpoint: Schema.optionalKey(Schema.Boolean),
  /** The words that led the models. */
  prompt_version: Schema.String,
  /** Where commands run. */
  sandbox: SandboxKind
})
export type RunRequest = typeof RunRequest.Type
