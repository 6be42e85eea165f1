/**
 * The one vocabulary of events. A run is the fold of its events (`Run.ts`); everything shown, billed or resumed is a
 * projection of them. Event names are the reference's where it has one.
 */
import { Schema } from "effect"
import { ConversationItem, ModelTurn, ToolCall } from "./Conversation.ts"
import { CommitId, Digest, RunId, ToolCallId, TreeId } from "./Ids.ts"
import { ModelErrorFacts } from "./ModelError.ts"
import { PromptSection } from "./Prompt.ts"
import { Octets } from "./Octets.ts"
import { ChangedFile, CheckOutcome, Lane, RunStatus, TerminalReason } from "./Result.ts"
import { SandboxKind } from "./SandboxRule.ts"
import { Dependencies } from "./Task.ts"
import { Usage } from "./Usage.ts"
import { Exchange } from "./Wire.ts"

/** What an action does to the world. Named so that nobody confuses it with an Effect. */
export const ActionEffect = Schema.Literals(["read", "modify", "modify_execute", "execute"])
export type ActionEffect = typeof ActionEffect.Type

export const ApprovalDecision = Schema.Literals(["allow_once", "allow_session", "deny", "cancel"])
export type ApprovalDecision = typeof ApprovalDecision.Type

/** Where a check or a command ran and why. */
export const CheckPurpose = Schema.Literals(["preflight", "model", "final"])
export type CheckPurpose = typeof CheckPurpose.Type

const Step = Schema.Int

const event = <const Type extends string, const Fields extends Schema.Struct.Fields>(
  type: Type,
  fields: Fields
) => Schema.Struct({ event_type: Schema.Literal(type), data: Schema.Struct(fields) })

export const RunCreated = event("run.created", {
  run_id: RunId,
  provider: Schema.String,
  model: Schema.String,
  prompt_version: Schema.String,
  base_sha: CommitId,
  /** Where commands run. */
  sandbox: Schema.optionalKey(SandboxKind),
  store_version: Schema.Int
})
/** What the prompt is made of, beside the task: facts of the base commit. */
export const RepositoryRead = event("repository.read", {
  /** Files of the base commit. */
  files: Schema.Int,
  /** Their paths, as many as the prompt shows. */
  overview: Schema.String,
  instructions: Schema.Array(Schema.Struct({ source: Schema.String, content: Schema.String }))
})
/** The stable and dynamic prompt as sent first, and the conversation's first items. */
export const PromptBuilt = event("prompt.built", {
  prompt_version: Schema.String,
  sections: Schema.Array(PromptSection),
  tools: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      description: Schema.String,
      parameters: Schema.Record(Schema.String, Schema.Unknown)
    })
  )
})
export const WorkspacePrepared = event("workspace.prepared", {
  base_sha: CommitId,
  tree: TreeId,
  /** Paths of a dirty source that the run does not see. */
  left_out: Schema.Array(Schema.String),
  dependencies: Schema.Struct({
    requested: Dependencies,
    /** What came along, relative to the root: dependency directories and `--include` files. */
    copied: Schema.Array(Schema.String),
    /** It is shown to commands where it is, and not copied. */
    mounted: Schema.optionalKey(Schema.Boolean),
    lock_digest: Schema.NullOr(Digest),
    /** Why nothing came along, when something was there. */
    reason: Schema.NullOr(Schema.String)
  }),
  setup: Schema.Array(Schema.String)
})
/** The workspace stands again where the journal says, before a resumed run goes on. */
export const WorkspaceRestored = event("workspace.restored", {
  tree: TreeId,
  /** What stood there: another tree is what an unfinished tool left. Null when the workspace was made anew. */
  found: Schema.NullOr(TreeId)
})
/** The state that a final answer is judged by. */
export const WorkspaceScanned = event("workspace.scanned", { tree: TreeId })
export const ConversationAppended = event("conversation.appended", { item: ConversationItem })
export const ModelRequested = event("model.requested", {
  step: Step,
  provider: Schema.String,
  model: Schema.String,
  lane: Lane,
  /** Active time that the run had used, in milliseconds. */
  active_ms: Schema.optionalKey(Schema.Finite)
})
/** What crossed the wire for one attempt, before what it came to. A model without a wire has none. */
export const ModelExchanged = event("model.exchanged", {
  step: Step,
  attempt: Schema.Int,
  provider: Schema.String,
  model: Schema.String,
  exchange: Exchange
})
export const ModelCompleted = event("model.completed", {
  step: Step,
  provider: Schema.String,
  model: Schema.String,
  lane: Lane,
  turn: ModelTurn
})
/** Written before the wait it announces. */
export const ModelRetry = event("model.retry", {
  step: Step,
  attempt: Schema.Int,
  delay_ms: Schema.Finite,
  error: ModelErrorFacts
})
/** The run's later turns all start at `to_*`. */
export const ModelFallback = event("model.fallback", {
  step: Step,
  from_provider: Schema.String,
  from_model: Schema.String,
  to_provider: Schema.String,
  to_model: Schema.String,
  error: ModelErrorFacts
})
export const ModelFailed = event("model.failed", { step: Step, error: ModelErrorFacts })

export const ToolRequested = event("tool.requested", {
  call: ToolCall,
  /** Null when no tool of that name exists. */
  effect: Schema.NullOr(ActionEffect)
})
export const ToolStarted = event("tool.started", {
  tool_call_id: ToolCallId,
  name: Schema.String,
  tree: TreeId
})
export const ToolCompleted = event("tool.completed", {
  tool_call_id: ToolCallId,
  name: Schema.String,
  ok: Schema.Boolean,
  content: Schema.String,
  /** The workspace after the call; null when the call never ran. */
  tree: Schema.NullOr(TreeId)
})
export const ToolBatchStarted = event("tool.batch_started", { tool_call_ids: Schema.Array(ToolCallId) })
export const ToolBatchCompleted = event("tool.batch_completed", { tool_call_ids: Schema.Array(ToolCallId) })

const action = { request_id: Schema.String, action_id: Schema.String, effect: ActionEffect }
/** Written before anybody is asked. */
export const ApprovalRequested = event("approval.requested", {
  ...action,
  reason: Schema.Literals(["model_tool", "final_verification", "preflight", "setup"]),
  preview: Schema.String
})
export const ApprovalResolved = event("approval.resolved", { ...action, decision: ApprovalDecision })

/** A question that was open when its process ended: nobody will answer it. */
export const ApprovalAbandoned = event("approval.abandoned", {
  ...action,
  reason: Schema.Literal("process_interrupted_before_decision")
})

export const VerificationStarted = event("verification.started", {
  name: Schema.String,
  argv: Schema.Array(Schema.String),
  purpose: CheckPurpose,
  tree: TreeId,
  /** Where it runs. */
  sandbox: Schema.optionalKey(SandboxKind)
})
export const VerificationCompleted = event("verification.completed", {
  purpose: CheckPurpose,
  tree: TreeId,
  outcome: CheckOutcome,
  /** Paths that the check wrote and that were thrown away with its place. */
  wrote: Schema.Array(Schema.String)
})
/** Every declared check of a final verification is done. */
export const VerificationSettled = event("verification.settled", {
  tree: TreeId,
  outcomes: Schema.Array(CheckOutcome)
})

export const LoopNudged = event("loop.read_only_stall_nudge", {
  consecutive_read_only_steps: Schema.Int,
  steps_remaining: Schema.Int
})
export const WindDownStarted = event("loop.wind_down_started", { step: Step })
export const WindDownCompleted = event("loop.wind_down_completed", { content: Schema.String })
export const WindDownFailed = event("loop.wind_down_failed", { message: Schema.String })

/** What a reader of the result should know. */
export const RunNoted = event("run.noted", { note: Schema.String })
/** Not terminal: `resume` takes the run from here. */
export const RunInterrupted = event("run.interrupted", { reason: Schema.String })

/** Models in the order in which they are tried. `endpoint` is the base URL; null for one that has none. */
export const RecordedModels = Schema.NonEmptyArray(
  Schema.Struct({ provider: Schema.String, model: Schema.String, endpoint: Schema.NullOr(Schema.String) })
)

const successor = {
  provider: Schema.String,
  model: Schema.String,
  base_sha: CommitId,
  resumed_step: Step,
  /** Active time that the run had used, in milliseconds. */
  active_ms: Schema.Finite,
  /** The models from now on, in the order in which they are tried. */
  models: RecordedModels
}
/** Another process took the run over. `provider` and `model` are asked from now on. */
export const SessionResumed = event("session.resumed", {
  ...successor,
  /** Events that were lost and that the user went on without (`--accept-loss`). */
  lost_events: Schema.Int
})
/** A follow-up task in the same conversation and workspace: steps and active time start again. */
export const SessionContinued = event("session.continued", {
  ...successor,
  instruction: Schema.String,
  /** As in `session.resumed`; absent when none were. */
  lost_events: Schema.optionalKey(Schema.Int)
})
/** The run begins where another one stood: everything before is that one's history. */
export const RunForked = event("run.forked", {
  run_id: RunId,
  source_run_id: RunId,
  fork_point_sequence: Schema.Int,
  fork_point_event_type: Schema.String,
  base_sha: CommitId
})
/** What a tree is against the base: kept before any check of it runs, so that what passed is what is handed over. */
export const PatchCollected = event("patch.collected", {
  tree: TreeId,
  files: Schema.Array(ChangedFile),
  patch: Octets,
  /** What the tree cannot hold, one line each. */
  unrecorded: Schema.Array(Schema.String)
})
/** The run's end, and the last line unless a follow-up task came after it. */
export const RunEnded = event("run.ended", {
  status: RunStatus,
  terminal_reason: TerminalReason,
  error: Schema.NullOr(Schema.String),
  changed_files: Schema.Array(Schema.String),
  tree: Schema.NullOr(TreeId),
  usage: Usage
})

export const RunEvent = Schema.Union([
  RunCreated,
  RepositoryRead,
  PromptBuilt,
  WorkspacePrepared,
  WorkspaceRestored,
  WorkspaceScanned,
  ConversationAppended,
  ModelRequested,
  ModelExchanged,
  ModelCompleted,
  ModelRetry,
  ModelFallback,
  ModelFailed,
  ToolRequested,
  ToolStarted,
  ToolCompleted,
  ToolBatchStarted,
  ToolBatchCompleted,
  ApprovalRequested,
  ApprovalResolved,
  ApprovalAbandoned,
  VerificationStarted,
  VerificationCompleted,
  VerificationSettled,
  LoopNudged,
  WindDownStarted,
  WindDownCompleted,
  WindDownFailed,
  RunNoted,
  RunInterrupted,
  SessionResumed,
  SessionContinued,
  RunForked,
  PatchCollected,
  RunEnded
])
export type RunEvent = typeof RunEvent.Type
export type RunEventType = RunEvent["event_type"]
/** The payload of an event type. */
export type EventData<Type extends RunEventType> = Extract<RunEvent, { readonly event_type: Type }>["data"]

/** An event of a type that this version does not know: kept and counted, never dropped. */
export interface UnknownEvent {
  readonly event_type: string
  readonly data: unknown
}

const eventTypes: ReadonlySet<string> = new Set(
  RunEvent.members.map((member) => member.fields.event_type.literal)
)
/** Whether an event is of a type that this version knows. */
export const isKnownType = (type: string): type is RunEventType => eventTypes.has(type)

export const isKnown = (event: RunEvent | UnknownEvent): event is RunEvent => isKnownType(event.event_type)

/** The journal's envelope. `previous` is the SHA-256 of the exact bytes of the line before, 64 zeros on the first. */
export const EntryHeader = Schema.Struct({
  version: Schema.Literal(1),
  sequence: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  previous: Digest,
  /** ISO 8601, UTC. */
  created_at: Schema.String
})
export type EntryHeader = typeof EntryHeader.Type
/** An event in its envelope. On disk the two are one flat object: `JournalLine` of `JournalCodec.ts`. */
export interface JournalEntry extends EntryHeader {
  readonly event: RunEvent
}

/** The version of the store's layout: the files of a bundle and the journal's envelope. */
export const storeVersion = 2
