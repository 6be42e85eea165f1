/**
 * A process that dies on purpose. Everything that outlives a process is a step: a change of the disk, a process that is
 * started, a request that leaves, an edit. Steps are counted over all of them together, and at the chosen one the
 * process dies before it, in the middle of it, or is only slow.
 */
import { Duration, Effect, type FileSystem, PlatformError, Stream } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { modelError } from "../../domain/ModelError.ts"
import type { Model } from "../../services/Model.ts"
import * as Faulty from "../fs/Faulty.ts"

export type LifeStepKind = "disk" | "spawn" | "send" | "edit"

export interface LifeStep {
  readonly index: number
  readonly kind: LifeStepKind
  /** A path, a command, or who is asked. */
  readonly what: string
}

/** What happens at the chosen step: the process dies before it; half of it is done and then the process dies; or it
 * takes long. */
export type Blow = "die" | "tear" | "delay"

export interface LifeOptions {
  /** The step that is struck; null for a process that lives. */
  readonly at: number | null
  readonly blow: Blow
}

type Fate = "go" | "delay" | "tear" | "dead"

export interface Life {
  /** Counts a step and says what becomes of it. */
  readonly fate: (kind: LifeStepKind, what: string) => Fate
  readonly steps: () => ReadonlyArray<LifeStep>
  readonly isDead: () => boolean
}

/** How long a slow step takes, by the program's clock. */
export const slowness = Duration.seconds(2)

export const makeLife = ({ at, blow }: LifeOptions): Life => {
  const steps: Array<LifeStep> = []
  let dead = false
  return {
    steps: () => steps,
    isDead: () => dead,
    fate: (kind, what) => {
      if (dead) return "dead"
      const index = steps.length
      steps.push({ index, kind, what })
      if (index !== at) return "go"
      if (blow === "delay") return "delay"
      dead = true
      return blow === "tear" ? "tear" : "dead"
    }
  }
}

/** Of a write that the process dies in, this many bytes get through. */
const tornBytes = 40

/** A disk that a mortal process writes. */
export const mortalFileSystem = (inner: FileSystem.FileSystem, life: Life): FileSystem.FileSystem =>
  Faulty.make(inner, (step) => {
    switch (life.fate("disk", `${step.kind} ${step.path}`)) {
      case "go":
        return null
      case "delay":
        return { delay: slowness }
      case "tear":
        return { error: "EIO", shortWrite: tornBytes }
      case "dead":
        return { error: "EIO" }
    }
  })

const gone = PlatformError.systemError({
  _tag: "Unknown",
  module: "ChildProcess",
  method: "spawn",
  description: "the process that would have started it is dead"
})

/** Processes that a mortal process starts. Torn: one that was started and dies with it. */
export const mortalSpawner = (
  inner: ChildProcessSpawner.ChildProcessSpawner["Service"],
  life: Life
): ChildProcessSpawner.ChildProcessSpawner["Service"] =>
  ChildProcessSpawner.make((command) => {
    const what = command._tag === "StandardCommand" ? command.command : "a pipeline"
    switch (life.fate("spawn", what)) {
      case "go":
        return inner.spawn(command)
      case "delay":
        return Effect.andThen(Effect.sleep(slowness), inner.spawn(command))
      case "tear":
        return Effect.andThen(
          Effect.flatMap(inner.spawn(command), (handle) => handle.kill()),
          Effect.fail(gone)
        )
      case "dead":
        return Effect.fail(gone)
    }
  })

/** A model that a mortal process asks. Torn: the answer arrives in part. */
export const mortalModel = (inner: Model, life: Life): Model => {
  const { model, provider } = inner
  const failure = modelError({
    provider,
    model,
    kind: "invalid_request",
    message: "the process that would have asked is dead"
  })
  return {
    ...inner,
    stream: (request) =>
      Stream.unwrap(
        Effect.sync(() => {
          switch (life.fate("send", `${provider}/${model}`)) {
            case "go":
              return inner.stream(request)
            case "delay":
              return Stream.fromEffect(Effect.sleep(slowness)).pipe(
                Stream.drain,
                Stream.concat(inner.stream(request))
              )
            case "tear":
              return Stream.concat(Stream.take(inner.stream(request), 1), Stream.fail(failure))
            case "dead":
              return Stream.fail(failure)
          }
        })
      )
  }
}
