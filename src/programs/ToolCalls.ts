/**
 * The tool calls of one turn: each is decided, run and answered, in call order. What the model did wrong is an answer.
 */
import { Effect, Ref } from "effect"
import type { ToolCall } from "../domain/Conversation.ts"
import { callText, remember, repeats, type Round } from "../domain/Repetition.ts"
import { Approval, type ApprovalUnavailable } from "../services/Approval.ts"
import type { Journal, StoreError } from "../services/RunStore.ts"
import type { Observation, Tool, ToolContext } from "../services/Tools.ts"
import type { WorkspaceError } from "../services/Workspace.ts"
import { ending, type Ending } from "./Ending.ts"
import type { Stopwatch } from "./Stopwatch.ts"

/** Read-only calls of one turn that run side by side. */
const maxConcurrent = 8
/** Of an action as a person sees it before deciding, in characters. */
const maxPreview = 16_000

export interface Calling {
  readonly journal: Journal
  readonly tools: ReadonlyArray<Tool>
  readonly stopwatch: Stopwatch
  readonly rounds: Ref.Ref<ReadonlyArray<Round>>
  /** Waits for the workspace: the first tool needs it, the first request did not. */
  readonly context: Effect.Effect<ToolContext, WorkspaceError | StoreError>
}

/** What the loop must know of a turn's calls. */
export type CallsOutcome =
  | { readonly _tag: "Answered"; readonly acted: boolean }
  | { readonly _tag: "Ended"; readonly ending: Ending }

type Prepared =
  | { readonly _tag: "Run"; readonly call: ToolCall; readonly tool: Tool }
  | { readonly _tag: "Answer"; readonly call: ToolCall; readonly observation: Observation }
  | { readonly _tag: "End"; readonly ending: Ending }

const refusal = (content: string): Observation => ({ ok: false, content })

/** Everything before a call may run: repetition, existence, readable arguments, permission. */
const prepare = Effect.fnUntraced(function* (
  calling: Calling,
  call: ToolCall
): Effect.fn.Return<Prepared, ApprovalUnavailable | StoreError, Approval> {
  const { journal, rounds, tools } = calling
  if (repeats(yield* Ref.get(rounds), callText(call.name, call.invalid_arguments ?? call.arguments))) {
    return {
      _tag: "End",
      ending: ending(
        "repeated_action",
        `the model went round in circles: ${call.name} again, with the same arguments`
      )
    }
  }
  const tool = tools.find((candidate) => candidate.definition.name === call.name)
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
  const standing = approval.standing(request)
  const decision =
    standing ??
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
  yield* Ref.update(calling.rounds, (past) =>
    remember(past, {
      call: callText(call.name, call.invalid_arguments ?? call.arguments),
      observation: observation.content
    })
  )
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

/** Answers every call of a turn, or says how the run ends. */
export const answerCalls = Effect.fn("ToolCalls.answerCalls")(function* (
  calling: Calling,
  calls: ReadonlyArray<ToolCall>
): Effect.fn.Return<CallsOutcome, ApprovalUnavailable | StoreError | WorkspaceError, Approval> {
  let acted = false
  let batch: Array<Extract<Prepared, { readonly _tag: "Run" }>> = []
  const flush = Effect.suspend(() => {
    const ready = batch
    batch = []
    return ready.length === 0 ? Effect.void : runAll(calling, ready)
  })
  for (const call of calls) {
    const known = calling.tools.find((tool) => tool.definition.name === call.name)
    // A call that changes something, or that repeats one still in the batch, must see what came before it.
    if (known?.concurrent !== true || batch.some((b) => sameCall(b.call, call))) yield* flush
    const prepared = yield* prepare(calling, call)
    switch (prepared._tag) {
      case "End":
        yield* flush
        return { _tag: "Ended", ending: prepared.ending }
      case "Answer":
        yield* flush
        yield* answer(calling, prepared.call, prepared.observation)
        break
      case "Run":
        acted ||= prepared.tool.effect !== "read"
        batch.push(prepared)
        if (!prepared.tool.concurrent) yield* flush
    }
  }
  yield* flush
  return { _tag: "Answered", acted }
})

const sameCall = (a: ToolCall, b: ToolCall): boolean =>
  callText(a.name, a.arguments) === callText(b.name, b.arguments)
