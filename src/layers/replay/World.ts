/**
 * The world as a recording knows it: what a program asks of it is answered with what was answered then.
 */
import { Effect } from "effect"
import { callText } from "../../domain/Repetition.ts"
import { fromOctets } from "../../domain/Octets.ts"
import type { TreeId } from "../../domain/Ids.ts"
import type { RunEvent, RunEventType } from "../../domain/Event.ts"
import { Approval, ApprovalUnavailable } from "../../services/Approval.ts"
import { Checks } from "../../services/Checks.ts"
import { Git, GitError } from "../../services/Git.ts"
import { Sandbox, SandboxError } from "../../services/Sandbox.ts"
import { type Tool, Tools } from "../../services/Tools.ts"
import { type FreshPlace, type OpenWorkspace, WorkspaceError, Workspaces } from "../../services/Workspace.ts"
import type { EventOf, Reel } from "./Reel.ts"

const is =
  <Type extends RunEventType>(type: Type) =>
  (event: RunEvent): event is EventOf<Type> =>
    event.event_type === type

/** What was recorded is told again; what was not never comes. */
const told = <A>(value: A | null): Effect.Effect<A> => (value === null ? Effect.never : Effect.succeed(value))

const unreachable = (what: string) => Effect.die(`a replay never ${what}`)

/** How the recorded process ended, where that is the trace of something that failed. */
const failure = (
  reel: Reel,
  reason: "workspace_failed" | "patch_artifact_failed" | "approval_unavailable"
) => {
  const ended = reel.find(is("run.ended"))
  return ended?.data.terminal_reason === reason ? (ended.data.error ?? "") : null
}

const workspaceError = (message: string) => new WorkspaceError({ reason: "failed", message })

export const workspaces = (reel: Reel, places: Map<string, { readonly wrote: Array<string> }>) => {
  const failing = <A>(value: A | null, strip: string): Effect.Effect<A, WorkspaceError> => {
    if (value !== null) return Effect.succeed(value)
    const why = failure(reel, "workspace_failed") ?? failure(reel, "patch_artifact_failed")
    return why === null
      ? Effect.never
      : Effect.andThen(reel.ending, Effect.fail(workspaceError(why.replace(strip, ""))))
  }
  const patchPrefix = "the patch cannot be handed over: "
  const collected = (tree: TreeId) =>
    failing(
      reel.find(
        (event): event is EventOf<"patch.collected"> =>
          event.event_type === "patch.collected" && event.data.tree === tree
      ),
      patchPrefix
    )
  let made = 0
  const workspace = (prepared: OpenWorkspace["prepared"], found: TreeId | null): OpenWorkspace => ({
    root: "/replay/workspace",
    prepared,
    found,
    read: () => unreachable("reads a file"),
    resolve: () => unreachable("follows a path"),
    list: () => unreachable("lists files"),
    apply: () => unreachable("edits a file"),
    restore: () => unreachable("puts files back"),
    diff: () => unreachable("compares trees"),
    tree: Effect.sync(() => reel.state().tree ?? prepared.tree),
    scan: Effect.suspend(() =>
      Effect.map(failing(reel.find(is("workspace.scanned")), patchPrefix), ({ data }) => data.tree)
    ),
    handOver: (tree) =>
      Effect.suspend(() =>
        Effect.map(collected(tree), ({ data }) => ({ patch: fromOctets(data.patch), files: data.files }))
      ),
    unrecorded: Effect.suspend(() =>
      Effect.map(failing(reel.find(is("patch.collected")), patchPrefix), ({ data }) => data.unrecorded)
    ),
    materialise: (tree) =>
      Effect.sync((): FreshPlace => {
        made += 1
        const root = `/replay/${made}@${tree}`
        const place = { wrote: new Array<string>() }
        places.set(root, place)
        return { root, distrust: null, wrote: Effect.sync(() => place.wrote) }
      })
  })
  return Workspaces.of({
    open: ({ resume }) =>
      Effect.suspend(() => {
        if (resume === undefined) {
          const prepared = reel.find(is("workspace.prepared"))
          return Effect.map(failing(prepared, ""), ({ data }) => workspace(data, null))
        }
        // Where it could not be had, the recorded process said nothing at all.
        const restored = reel.find(is("workspace.restored"))
        return Effect.succeed(workspace(resume.prepared, restored?.data.found ?? null))
      })
  })
}

export const checks = (reel: Reel, places: Map<string, { readonly wrote: Array<string> }>) => {
  const taken = new Set<unknown>()
  return Checks.of({
    run: (check, place, { purpose }) =>
      Effect.suspend(() => {
        const completed = reel.find(
          (event): event is EventOf<"verification.completed"> =>
            event.event_type === "verification.completed" &&
            event.data.purpose === purpose &&
            event.data.outcome.name === check.name &&
            place.root.endsWith(`@${event.data.tree}`) &&
            !taken.has(event)
        )
        taken.add(completed)
        places.get(place.root)?.wrote.push(...(completed?.data.wrote ?? []))
        return told(completed?.data.outcome ?? null)
      })
  })
}

/** A tool that says what it said. Equal calls of one turn are answered one after the other. */
const retold = (reel: Reel, tool: Tool): Tool => ({
  ...tool,
  call: (args) =>
    Effect.suspend(() => {
      const text = callText(tool.definition.name, args)
      const ids = new Set(
        reel
          .state()
          .pending.filter(({ call }) => callText(call.name, call.arguments) === text)
          .map(({ call }) => call.id)
      )
      const completed = reel.find(
        (event): event is EventOf<"tool.completed"> =>
          event.event_type === "tool.completed" && ids.has(event.data.tool_call_id)
      )
      return Effect.map(told(completed), ({ data: { content, ok, tree } }) => ({
        ok,
        content,
        ...(tree === null ? {} : { tree })
      }))
    })
})

/** The real tools by name, schema and flags; what they did is told. A check is run again, as recorded. */
export const tools = (reel: Reel, real: Tools["Service"]) =>
  Tools.of({
    toolset: (options) =>
      real.toolset(options).map((tool) => (tool.definition.name === "run_check" ? tool : retold(reel, tool)))
  })

export const approval = (reel: Reel) => {
  const asked = (action_id: string) =>
    reel.find(
      (event): event is EventOf<"approval.requested"> =>
        event.event_type === "approval.requested" && event.data.action_id === action_id
    )
  /** An action that was denied without asking anybody was answered and never started. */
  const started = (action_id: string) =>
    reel.find(
      (event): event is EventOf<"tool.started"> | EventOf<"tool.completed"> =>
        (event.event_type === "tool.started" || event.event_type === "tool.completed") &&
        event.data.tool_call_id === action_id
    )?.event_type !== "tool.completed"
  return Approval.of({
    standing: ({ action_id }) =>
      asked(action_id) !== null ? null : started(action_id) ? "allow_once" : "deny",
    ask: ({ action_id }) =>
      Effect.suspend(() => {
        const resolved = reel.find(
          (event): event is EventOf<"approval.resolved"> =>
            event.event_type === "approval.resolved" && event.data.action_id === action_id
        )
        const why = failure(reel, "approval_unavailable")
        if (resolved !== null || why === null) return told(resolved?.data.decision ?? null)
        return Effect.fail(new ApprovalUnavailable({ message: why }))
      })
  })
}

/** Nothing of a repository is asked in a replay: what the prompt was made of is in the journal. */
export const git = (() => {
  const absent = Effect.fail(new GitError({ reason: "failed", message: "a replay has no repository" }))
  return Git.of({
    source: () => absent,
    resolve: () => absent,
    dirty: () => absent,
    file: () => absent,
    paths: () => absent
  })
})()

export const sandbox = (kind: Sandbox["Service"]["kind"]) =>
  Sandbox.of({
    kind,
    run: () => Effect.fail(new SandboxError({ reason: "refused", message: "a replay starts no process" }))
  })
