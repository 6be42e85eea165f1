/**
 * The one way in which a tool is made: its JSON Schema, its decoder and its bounds all come from one record.
 */
import { Effect, Result, Schema, SchemaIssue } from "effect"
import type { ActionEffect } from "../../domain/Event.ts"
import { TreeId } from "../../domain/Ids.ts"
import { isRecord, type JsonRecord } from "../../domain/Json.ts"
import type { PatchError } from "../../domain/patch/PatchError.ts"
import { boundText, takeHead } from "../../domain/Text.ts"
import type { StoreError } from "../../services/RunStore.ts"
import type { SearchError } from "../../services/Search.ts"
import type { Observation, Tool, ToolContext } from "../../services/Tools.ts"
import type { WorkspaceError } from "../../services/Workspace.ts"

/** What a tool will not do. `tree` is set when the workspace was touched on the way there. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  message: Schema.String,
  tree: Schema.optionalKey(TreeId)
}) {}

export const refuse = (message: string): Refused => new Refused({ message })

/** Everything that a handler may fail with. Each becomes an observation. */
export type ToolFailure = Refused | WorkspaceError | PatchError | SearchError

type Arguments = Schema.Codec<object>

/** Of a tool that takes none. An empty struct would take anything. */
export const NoArguments = Schema.Record(Schema.String, Schema.Never)

export interface ToolSpec<S extends Arguments> {
  readonly name: string
  readonly description: string
  readonly schema: S
  readonly effect: ActionEffect
  readonly concurrent: boolean
  readonly handler: (
    args: S["Type"],
    context: ToolContext
  ) => Effect.Effect<Observation, ToolFailure | StoreError>
  /** What a person should see before allowing it. */
  readonly preview: (args: S["Type"]) => string
}

const maxPreviewBytes = 16_000
const maxShownArgumentBytes = 80

/** Takes out what is noise to a model: bounds that mean "a safe integer", a choice among one. */
const tidy = (_: string, value: unknown): unknown => {
  if (!isRecord(value)) return value
  const { anyOf, ...rest } = value
  if (Array.isArray(anyOf) && anyOf.length === 1 && isRecord(anyOf[0])) return { ...anyOf[0], ...rest }
  return Object.fromEntries(
    Object.entries(value).filter(
      ([key, bound]) =>
        !(key === "maximum" && bound === Number.MAX_SAFE_INTEGER) &&
        !(key === "minimum" && bound === Number.MIN_SAFE_INTEGER)
    )
  )
}

/** Plain draft 2020-12: no `$schema`, no references, no alternatives, nothing that a provider chokes on. */
export const parametersOf = (schema: Arguments): JsonRecord => {
  const document = Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })
  const parameters: unknown = JSON.parse(JSON.stringify(document.schema, tidy))
  return { type: "object", properties: {}, required: [], ...(isRecord(parameters) ? parameters : {}) }
}

const shownArgument = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "nothing"
  const head = takeHead(text, maxShownArgumentBytes)
  return head === text ? text : `${head}…`
}

const describeIssue =
  (args: JsonRecord) =>
  (issue: {
    readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
    readonly message: string
  }): string => {
    const [first] = issue.path ?? []
    const field = String(typeof first === "object" ? first.key : first)
    if (!Object.hasOwn(args, field)) return `- ${field}: is missing`
    if (issue.message === "Expected no excess property" || issue.message === "Expected never")
      return `- ${field}: there is no such field`
    return `- ${field}: ${issue.message.replace(/^Expected/, "expected")}, got ${shownArgument(args[field])}`
  }

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/** What was wrong, field by field, and which fields there are. */
const describeError = (error: Schema.SchemaError, args: JsonRecord, parameters: JsonRecord): string => {
  const { properties, required } = parameters
  const fields = Object.keys(isRecord(properties) ? properties : {}).map((field) =>
    Array.isArray(required) && required.includes(field) ? `${field} (required)` : field
  )
  return [
    "the arguments are not valid, so nothing was done:",
    ...new Set(formatIssue(error.issue).issues.map(describeIssue(args))),
    fields.length === 0 ? "the tool takes no arguments" : `fields: ${fields.join(", ")}`
  ].join("\n")
}

/** Models fill optional fields with null; leaving those out loses nothing. Nothing else is forgiven. */
const withoutNulls = (args: JsonRecord, parameters: JsonRecord): JsonRecord => {
  const { properties, required } = parameters
  const optional = (key: string): boolean =>
    isRecord(properties) &&
    Object.hasOwn(properties, key) &&
    !(Array.isArray(required) && required.includes(key))
  return Object.fromEntries(Object.entries(args).filter(([key, value]) => value !== null || !optional(key)))
}

const observe = (failure: ToolFailure): Observation => ({
  ok: false,
  content: failure.message,
  ...(failure._tag === "Refused" && failure.tree !== undefined ? { tree: failure.tree } : {})
})

/** Makes a tool. What its handler answers is bounded, what it fails with is an observation. */
export const defineTool = <const S extends Arguments>(spec: ToolSpec<S>): Tool => {
  const parameters = parametersOf(spec.schema)
  const decodeAll = Schema.decodeUnknownResult(spec.schema, { errors: "all", onExcessProperty: "error" })
  const decode = (args: JsonRecord) => decodeAll(withoutNulls(args, parameters))
  const run = (args: JsonRecord, context: ToolContext): Effect.Effect<Observation, StoreError> => {
    const decoded = decode(args)
    if (Result.isFailure(decoded)) {
      return Effect.succeed({ ok: false, content: describeError(decoded.failure, args, parameters) })
    }
    return spec
      .handler(decoded.success, context)
      .pipe(
        Effect.catchTag(["Refused", "WorkspaceError", "PatchError", "SearchError"], (failure) =>
          Effect.as(Effect.logDebug(`tool ${spec.name} refused`, failure), observe(failure))
        )
      )
  }
  return {
    definition: { name: spec.name, description: spec.description, parameters },
    effect: spec.effect,
    concurrent: spec.concurrent,
    call: Effect.fn(`Tools.${spec.name}`)(function* (args, context) {
      const observation = yield* run(args, context)
      return { ...observation, content: boundText(observation.content, context.limits.max_tool_output_bytes) }
    }),
    preview: (args) =>
      boundText(
        Result.match(decode(args), {
          onFailure: () => `${spec.name} ${JSON.stringify(args)}`,
          onSuccess: spec.preview
        }),
        maxPreviewBytes
      )
  }
}
