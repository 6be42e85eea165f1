/**
 * The world as a recording knows it: what a program asks of it is answered with what was answered then.
 */
import { Effect } from "effect"
import { callText } from "../../domain/Repetition.ts"
import { fromOctets } from "../../domain/Octets.ts"
import type { RunEvent } from "../../domain/Event.ts"
import type { TreeId } from "../../domain/Ids.ts"
import { Approval, ApprovalUnavailable } from "../../services/Approval.ts"
import { Checks } from "../../services/Checks.ts"
import { Git, GitError } from "../../services/Git.ts"
import { Sandbox, SandboxError } from "../../services/Sandbox.ts"
import { type Tool, Tools } from "../../services/Tools.ts"
import { type FreshPlace, type OpenWorkspace, WorkspaceError, Workspaces } from "../../services/Workspace.ts"
import { isLastWord, type EventOf, type Reel } from "./Reel.ts"

const unreachable = (what: string) => Effect.die(`a replay never ${what}`)

const patchPrefix = "the patch cannot be handed over: "
/** Times are recorded in milliseconds: what was told in the same one as a time-out came before it or after it. */
const behind = 0.5

/**
 * What was recorded of an outcome. Where nothing was, it failed, its program died of it, or it never came: how the
 * recorded process ended is the trace of that. A process that broke off says its last words all the same, and may have
 * been given then what it had been refused before. So of all that is asked for when only the last words are left, the
 * first is what broke a run that ended broken.
 */
export const outcome = <Told extends RunEvent, E = never>(
  reel: Reel,
  recorded: () => Told | null,
  failed: ((message: string) => E) | null = null
): Effect.Effect<Told, E> =>
  Effect.suspend(() => {
    const ended = reel.find("run.ended")?.data ?? null
    const reason = ended?.terminal_reason
    const broke =
      reel.concluding() &&
      !reel.broken() &&
      (reason === "error" || (reason === "workspace_failed" && failed !== null))
    const told = recorded()
    if (told !== null && !(broke && isLastWord(told))) {
      // A time-out may have come before it, and then it was told to whoever asked next.
      return reason === "wall_time_exceeded" && isLastWord(told)
        ? Effect.as(Effect.sleep(Math.max(0, reel.timeOf(told) + behind - reel.time_ms())), told)
        : Effect.succeed(told)
    }
    const fail = (message: string): Effect.Effect<never, E> => {
      reel.breakOff()
      return failed === null ? Effect.die(message) : Effect.fail(failed(message))
    }
    const gone = Effect.suspend((): Effect.Effect<never, E> => {
      const message = (ended?.error ?? "").replace(patchPrefix, "")
      switch (reason) {
        // Only what goes on side by side is missing behind these two: they wait for it, whatever becomes of it.
        case "verified":
        case "checks_failed":
        case "error":
          reel.breakOff()
          return Effect.die(message)
        case "patch_artifact_failed":
          return fail(message)
        case "workspace_failed":
          return failed === null ? Effect.never : fail(message)
        case undefined:
          return reel.next() === null || reel.spent() ? Effect.never : fail("")
        default:
          return Effect.never
      }
    })
    return Effect.andThen(reel.ending, gone)
  })

const workspaceError = (message: string) => new WorkspaceError({ reason: "failed", message })

export const workspaces = (reel: Reel, places: Map<string, { readonly wrote: Array<string> }>) => {
  const collected = (fits: (event: EventOf<"patch.collected">) => boolean) =>
    outcome(reel, () => reel.find("patch.collected", fits), workspaceError)
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
    scan: Effect.map(
      outcome(reel, () => reel.find("workspace.scanned"), workspaceError),
      ({ data }) => data.tree
    ),
    handOver: (tree) =>
      Effect.map(
        collected(({ data }) => data.tree === tree),
        ({ data }) => ({ patch: fromOctets(data.patch), files: data.files })
      ),
    unrecorded: Effect.map(
      collected(() => true),
      ({ data }) => data.unrecorded
    ),
    materialise: (tree) =>
      Effect.sync((): FreshPlace => {
        made += 1
        const root = `/replay/${made}@${tree}`
        const place = { wrote: new Array<string>() }
        places.set(root, place)
        return { root, layers: [], distrust: null, wrote: Effect.sync(() => place.wrote) }
      })
  })
  return Workspaces.of({
    open: ({ resume }) =>
      Effect.suspend(() => {
        if (resume === undefined) {
          const prepared = outcome(reel, () => reel.find("workspace.prepared"), workspaceError)
          return Effect.map(prepared, ({ data }) => workspace(data, null))
        }
        // Where it could not be had, the recorded process said nothing at all.
        const restored = reel.find("workspace.restored")
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
          "verification.completed",
          ({ data }) =>
            data.purpose === purpose &&
            data.outcome.name === check.name &&
            place.root.endsWith(`@${data.tree}`) &&
            !taken.has(data)
        )
        taken.add(completed?.data)
        places.get(place.root)?.wrote.push(...(completed?.data.wrote ?? []))
        return Effect.map(
          outcome(reel, () => completed),
          ({ data }) => data.outcome
        )
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
      const completed = outcome(reel, () =>
        reel.find("tool.completed", ({ data }) => ids.has(data.tool_call_id))
      )
      return Effect.map(completed, ({ data: { content, ok, tree } }) => ({
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
    reel.find("approval.requested", ({ data }) => data.action_id === action_id)
  /** An action that was denied without asking anybody was answered and never started. */
  const started = (action_id: string) =>
    reel.find("tool.started", ({ data }) => data.tool_call_id === action_id) !== null ||
    reel.find("tool.completed", ({ data }) => data.tool_call_id === action_id) === null
  return Approval.of({
    standing: ({ action_id }) =>
      asked(action_id) !== null ? null : started(action_id) ? "allow_once" : "deny",
    ask: ({ action_id }) =>
      Effect.suspend(() => {
        const resolved = reel.find("approval.resolved", ({ data }) => data.action_id === action_id)
        const ended = reel.find("run.ended")?.data
        return resolved === null && ended?.terminal_reason === "approval_unavailable"
          ? Effect.fail(new ApprovalUnavailable({ message: ended.error ?? "" }))
          : Effect.map(
              outcome(reel, () => resolved),
              ({ data }) => data.decision
            )
      })
  })
}

/** What the prompt is made of. */
export const repository = (reel: Reel) =>
  Effect.map(
    outcome(
      reel,
      () => reel.find("repository.read"),
      (message) => new GitError({ reason: "failed", message })
    ),
    ({ data }) => data
  )

/** Nothing of a repository is asked in a replay: what the prompt was made of is in the journal. */
export const git = (() => {
  const absent = Effect.fail(new GitError({ reason: "failed", message: "a replay has no repository" }))
  return Git.of({
    source: () => absent,
    resolve: () => absent,
    file: () => absent,
    paths: () => absent
  })
})()

export const sandbox = (kind: Sandbox["Service"]["kind"]) =>
  Sandbox.of({
    kind,
    overlays: false,
    run: () => Effect.fail(new SandboxError({ reason: "refused", message: "a replay starts no process" }))
  })
