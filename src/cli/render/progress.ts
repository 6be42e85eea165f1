/**
 * One line a step for people who watch a run on stderr.
 */
import { renderCommandLine } from "../../domain/CommandLine.ts"
import type { ToolCall } from "../../domain/Conversation.ts"
import { leftOut } from "../../domain/Run.ts"
import type { RunEvent } from "../../domain/Event.ts"
import { clip } from "./clip.ts"

const maxLine = 110

const line = (text: string): string => clip(text, maxLine)

/** The argument that says most about a call. */
const gist = (call: ToolCall): string => {
  const { name, path, query } = call.arguments
  const value = path ?? query ?? name
  return typeof value === "string" ? `${call.name} ${value}` : call.name
}

/** What a person wants to read of an event, at most two lines; null when it is not worth a line. */
export const progressLine = (event: RunEvent): string | null => {
  switch (event.event_type) {
    case "run.created":
      return line(`run ${event.data.run_id}  ${event.data.provider}/${event.data.model}`)
    case "workspace.prepared": {
      const { copied, reason } = event.data.dependencies
      const deps =
        copied.length > 0
          ? `, with ${copied.join(", ")}`
          : reason === null
            ? ""
            : `, without dependencies: ${reason}`
      return [
        line(`workspace ready${deps}`),
        ...leftOut(event.data).map((note) => line(`note: ${note}`))
      ].join("\n")
    }
    case "workspace.restored": {
      const { found, tree } = event.data
      return found === null
        ? "workspace made anew"
        : found === tree
          ? "workspace as it was"
          : "workspace put back to the last finished tool"
    }
    case "session.resumed":
      return line(
        `going on after step ${event.data.resumed_step}  ${event.data.provider}/${event.data.model}`
      )
    case "session.continued":
      return line(`follow-up task  ${event.data.provider}/${event.data.model}`)
    case "run.forked":
      return line(`forked from ${event.data.source_run_id} at event ${event.data.fork_point_sequence}`)
    case "approval.abandoned":
      return line(`  ${event.data.action_id}: nobody had decided, so it was not performed`)
    case "run.noted":
      return line(`note: ${event.data.note}`)
    case "model.completed": {
      const { step, turn } = event.data
      const what =
        turn.tool_calls.length > 0 ? turn.tool_calls.map(gist).join(", ") : turn.text || turn.finish_reason
      return line(`step ${step}: ${what}`)
    }
    case "model.retry":
      return line(
        `step ${event.data.step}: ${event.data.error.message}; trying again in ${(event.data.delay_ms / 1000).toFixed(1)} s (attempt ${event.data.attempt + 1})`
      )
    case "model.fallback":
      return line(`now asking ${event.data.to_provider}/${event.data.to_model}: ${event.data.error.message}`)
    case "tool.completed":
      return event.data.ok ? null : line(`  ${event.data.name} failed: ${event.data.content}`)
    case "verification.started":
      return event.data.purpose === "final" ? line(`checking: ${renderCommandLine(event.data.argv)}`) : null
    case "verification.completed": {
      const { outcome, purpose } = event.data
      const where = purpose === "preflight" ? "before any change, " : ""
      return line(
        `  ${where}${outcome.name} ${outcome.verdict}${outcome.reason === null ? "" : `: ${outcome.reason}`}`
      )
    }
    case "loop.wind_down_started":
      return "the step limit is reached; asking for a summary"
    case "run.ended":
      return line(`${event.data.status}: ${event.data.terminal_reason}`)
    case "repository.read":
    case "prompt.built":
    case "workspace.scanned":
    case "patch.collected":
    case "model.exchanged":
    case "conversation.appended":
    case "model.requested":
    case "model.failed":
    case "tool.requested":
    case "tool.started":
    case "tool.batch_started":
    case "tool.batch_completed":
    case "approval.requested":
    case "approval.resolved":
    case "verification.settled":
    case "loop.read_only_stall_nudge":
    case "loop.wind_down_completed":
    case "loop.wind_down_failed":
    case "run.interrupted":
      return null
  }
}
