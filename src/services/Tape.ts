/**
 * A recorded run that is played again: the world as it was, taken from the journal in the order in which it happened.
 */
import { Context, type Effect, type Exit } from "effect"
import type { EventData } from "../domain/Event.ts"
import type { Difference, Recording, Segment } from "../domain/Recording.ts"
import type { GitError } from "./Git.ts"
import type { Models } from "./Model.ts"
import type { TakenOver } from "./RunStore.ts"

export class Tape extends Context.Service<
  Tape,
  {
    readonly recording: Recording
    /** What the prompt was made of. */
    readonly repository: Effect.Effect<EventData<"repository.read">, GitError>
    /** The run as a later process found it. */
    readonly takeOver: Effect.Effect<TakenOver>
    /** The models of a process, which answer what they answered. */
    readonly models: (segment: Segment) => Effect.Effect<Models["Service"]["candidates"]>
    /**
     * Runs a program as one process of the recording, at the recording's time, until it ends or the recorded process
     * did. The first difference ends it, and every later one.
     */
    readonly play: <A, E, R>(
      segment: Segment,
      program: Effect.Effect<A, E, R>
    ) => Effect.Effect<Exit.Exit<A, E> | null, never, R>
    readonly difference: Effect.Effect<Difference | null>
  }
>()("looplane/services/Tape") {}
