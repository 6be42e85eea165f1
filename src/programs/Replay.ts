/**
 * A recorded run once more: the whole program, from the recorded bytes and outcomes, compared event by event.
 */
import { Effect } from "effect"
import { isKnown } from "../domain/Event.ts"
import { segmentsOf } from "../domain/Recording.ts"
import { Models } from "../services/Model.ts"
import { Tape } from "../services/Tape.ts"
import { ReadRepository } from "./Begin.ts"
import { resume } from "./Resume.ts"
import { run } from "./Run.ts"

/** Where the played run left its recording; null when it did not. */
export const replay = Effect.gen(function* () {
  const tape = yield* Tape
  const { entries, request, run_id } = tape.recording
  const first = entries[0]?.event
  for (const segment of segmentsOf(entries)) {
    const candidates = yield* tape.models(segment)
    const begins = entries[segment.from]?.event
    const instruction =
      begins !== undefined && isKnown(begins) && begins.event_type === "session.continued"
        ? begins.data.instruction
        : null
    const program =
      segment.kind === "created"
        ? run(request.task, {
            run_id:
              first !== undefined && isKnown(first) && first.event_type === "run.created"
                ? first.data.run_id
                : run_id,
            allow_custom_endpoint: request.allow_custom_endpoint === true
          })
        : Effect.scoped(Effect.flatMap(tape.takeOver, (taken) => resume(taken, { instruction })))
    yield* tape.play(
      segment,
      program.pipe(
        Effect.provideService(Models, Models.of({ candidates })),
        Effect.provideService(ReadRepository, () => tape.repository)
      )
    )
    const difference = yield* tape.difference
    if (difference !== null) return difference
  }
  return null
}).pipe(Effect.withSpan("Replay.replay"))
