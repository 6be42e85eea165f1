/**
 * The beginning of a conversation: what the repository is, the prompt, the task. From the base commit, since the clone
 * may still be on its way.
 */
import { Context, Effect } from "effect"
import type { EventData } from "../domain/Event.ts"
import { overviewOf, promptVersion, systemPrompt, taskMessage } from "../domain/SystemPrompt.ts"
import type { Task } from "../domain/Task.ts"
import { Git, type GitError } from "../services/Git.ts"
import type { Journal } from "../services/RunStore.ts"
import type { Tool } from "../services/Tools.ts"
import { instructionsOf } from "./Instructions.ts"

const readRepository = Effect.fnUntraced(function* (task: Task) {
  const git = yield* Git
  const paths = yield* git.paths(task.repository, task.base.commit)
  const instructions = yield* instructionsOf(task, paths)
  return { files: paths.length, overview: overviewOf(paths), instructions }
})

/** How the facts of the prompt are found: in the base commit, or where somebody keeps them. */
export const ReadRepository = Context.Reference<
  (task: Task) => Effect.Effect<EventData<"repository.read">, GitError, Git>
>("looplane/programs/ReadRepository", { defaultValue: () => readRepository })

/** As much of the beginning as the journal does not hold yet. */
export const begin = Effect.fn("Begin.begin")(function* (
  journal: Journal,
  task: Task,
  tools: ReadonlyArray<Tool>
) {
  const known = yield* journal.state
  const repository = known.repository ?? (yield* (yield* ReadRepository)(task))
  if (known.repository === null) yield* journal.append({ event_type: "repository.read", data: repository })
  if (known.prompt === null) {
    const described = tools.map(({ definition, effect }) => ({
      name: definition.name,
      description: definition.description,
      effect
    }))
    const sections = systemPrompt({ task, repository, tools: described })
    yield* journal.append({
      event_type: "prompt.built",
      data: { prompt_version: promptVersion, sections, tools: tools.map((tool) => tool.definition) }
    })
  }
  if (known.conversation.length === 0) {
    yield* journal.append({
      event_type: "conversation.appended",
      data: { item: { role: "user", content: taskMessage(task) } }
    })
  }
})
