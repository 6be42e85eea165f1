/**
 * The tool calls of one turn: each is decided, run and answered, in call order. What the model did wrong is an answer.
 */
import { Effect } from "effect"
import type { ToolCall } from "../domain/Conversation.ts"
import { ending, type Ending } from "../domain/Ending.ts"
import { callText, repeats } from "../domain/Repetition.ts"
import type { PendingCall } from "../domain/Run.ts"
import { Approval, type ApprovalUnavailable } from "../services/Approval.ts"
import type { Journal, StoreError } from "../services/RunStore.ts"
import type { Observation, Tool, ToolContext } from "../services/Tools.ts"
import type { WorkspaceError } from "../services/Workspace.ts"
import type { Stopwatch } from "./Stopwatch.ts"

/** Read-only calls of one turn that run side by side. */
const maxConcurrent = 8
/** Of an action as a person sees it before deciding, in characters. */
const maxPreview = 16_000

export interface Calling {
  readonly journal: Journal
  readonly tools: ReadonlyArray<Tool>
  readonly stopwatch: Stopwatch
  /** Waits for the workspace: the first tool needs it, the first request did not. */
  readonly context: Effect.Effect<ToolContext, WorkspaceError | StoreError>
}

type Prepared =
  | { readonly _tag: "Run"; readonly call: ToolCall; readonly tool: Tool }
  | { readonly _tag: "Answer"; readonly call: ToolCall; readonly observation: Observation }
  | { readonly _tag: "End"; readonly ending: Ending }

const refusal = (content: string): Observation => ({ ok: false, content })

/** Everything before a call may run: repetition, existence, readable arguments, permission. */
const prepare = Effect.fnUntraced(function* (
  calling: Calling,
  { call, decision: decided, effect, started_on }: PendingCall
): Effect.fn.Return<Prepared, ApprovalUnavailable | StoreError, Approval> {
  const { journal, tools } = calling
  if (repeats((yield* journal.state).rounds, callText(call.name, call.invalid_arguments ?? call.arguments))) {
    return {
      _tag: "End",
      ending: ending(
        "repeated_action",
        `the model went round in circles: ${call.name} again, with the same arguments`
      )
    }
  }
  const tool = tools.find((candidate) => candidate.definition.name === call.name)
  // One that was started has been looked at and allowed: its process died, and the workspace is as before it.
  if (tool !== undefined && started_on !== null) return { _tag: "Run", call, tool }
  if (effect === null)
    yield* journal.append({ event_type: "tool.requested", data: { call, effect: tool?.effect ?? null } })
  if (tool === undefined) {
    const names = tools.map((known) => known.definition.name).join(", ")
    return {
      _tag: "Answer",
      call,
      observation: refusal(`there is no tool named ${JSON.stringify(call.name)}; the tools are: ${names}`)
    }
  }
  if (call.invalid_arguments !== undefined) {
    return {
      _tag: "Answer",
      call,
      observation: refusal(
        "the arguments were not a valid JSON object, so nothing was run; send the call again with valid JSON"
      )
    }
  }
  const approval = yield* Approval
  const request = {
    request_id: `approval:${call.id}`,
    action_id: call.id,
    effect: tool.effect,
    reason: "model_tool",
    preview: tool.preview(call.arguments).slice(0, maxPreview)
  } as const
  const decision =
    decided ??
    approval.standing(request) ??
    (yield* Effect.gen(function* () {
      yield* journal.append({ event_type: "approval.requested", data: request })
      yield* journal.barrier
      const answer = yield* calling.stopwatch.pause(approval.ask(request))
      const { action_id, effect, request_id } = request
      yield* journal.append({
        event_type: "approval.resolved",
        data: { request_id, action_id, effect, decision: answer }
      })
      return answer
    }))
  switch (decision) {
    case "allow_once":
    case "allow_session":
      return { _tag: "Run", call, tool }
    case "deny":
      return { _tag: "Answer", call, observation: refusal("the action was denied; do something else") }
    case "cancel":
      return { _tag: "End", ending: ending("approval_cancelled") }
  }
})

const answer = Effect.fnUntraced(function* (calling: Calling, call: ToolCall, observation: Observation) {
  yield* calling.journal.append({
    event_type: "tool.completed",
    data: {
      tool_call_id: call.id,
      name: call.name,
      ok: observation.ok,
      content: observation.content,
      tree: observation.tree ?? null
    }
  })
})

/** Runs calls that were allowed: one, or several read-only ones side by side, answered in call order. */
const runAll = Effect.fnUntraced(function* (
  calling: Calling,
  batch: ReadonlyArray<Extract<Prepared, { readonly _tag: "Run" }>>
) {
  const { journal } = calling
  const context = yield* calling.context
  const tree = yield* context.workspace.tree
  const ids = batch.map(({ call }) => call.id)
  if (batch.length > 1)
    yield* journal.append({ event_type: "tool.batch_started", data: { tool_call_ids: ids } })
  for (const { call } of batch) {
    yield* journal.append({
      event_type: "tool.started",
      data: { tool_call_id: call.id, name: call.name, tree }
    })
  }
  yield* journal.barrier
  const observations = yield* Effect.forEach(batch, ({ call, tool }) => tool.call(call.arguments, context), {
    concurrency: maxConcurrent
  })
  for (const [i, { call }] of batch.entries()) {
    yield* answer(calling, call, observations[i] ?? refusal("the tool gave no answer"))
  }
  if (batch.length > 1)
    yield* journal.append({ event_type: "tool.batch_completed", data: { tool_call_ids: ids } })
})

/** Answers every call that is left of a turn; yields how the run ends, if one of them ends it. */
export const answerCalls = Effect.fn("ToolCalls.answerCalls")(function* (
  calling: Calling,
  calls: ReadonlyArray<PendingCall>
): Effect.fn.Return<Ending | undefined, ApprovalUnavailable | StoreError | WorkspaceError, Approval> {
  let batch: Array<Extract<Prepared, { readonly _tag: "Run" }>> = []
  const flush = Effect.suspend(() => {
    const ready = batch
    batch = []
    return ready.length === 0 ? Effect.void : runAll(calling, ready)
  })
  for (const pending of calls) {
    const { call } = pending
    const known = calling.tools.find((tool) => tool.definition.name === call.name)
    // A call that changes something, or that repeats one still in the batch, must see what came before it.
    if (known?.concurrent !== true || batch.some((b) => sameCall(b.call, call))) yield* flush
    const prepared = yield* prepare(calling, pending)
    switch (prepared._tag) {
      case "End":
        yield* flush
        return prepared.ending
      case "Answer":
        yield* flush
        yield* answer(calling, prepared.call, prepared.observation)
        break
      case "Run":
        batch.push(prepared)
        if (!prepared.tool.concurrent) yield* flush
    }
  }
  yield* flush
  return undefined
})

const sameCall = (a: ToolCall, b: ToolCall): boolean =>
  callText(a.name, a.arguments) === callText(b.name, b.arguments)
