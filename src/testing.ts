/**
 * `looplane/testing`: the fakes that looplane itself is tested with.
 */
import { Effect } from "effect"
import type { Recording } from "./domain/Recording.ts"
import type { RecordingError } from "./domain/RecordingFile.ts"
import { layerDigest } from "./layers/Live.ts"
import * as Record from "./programs/Record.ts"

export * from "./layers/Test.ts"
export * as Faults from "./layers/faults/Life.ts"
export * as FaultyFileSystem from "./layers/fs/Faulty.ts"
export * as MemoryFileSystem from "./layers/fs/Memory.ts"
export * as RecordedProcesses from "./layers/process/Recorded.ts"
export {
  recordedModel,
  scriptedModel,
  type Script,
  type ScriptedModel,
  type ScriptedTurn
} from "./layers/model/Scripted.ts"
export { makeMemoryWorkspace, type MemoryFile, type MemoryWorkspace } from "./layers/workspace/Memory.ts"
export { layerMemory as layerSearch } from "./layers/search/Memory.ts"
export { layerReplayOf as layerReplay } from "./layers/Live.ts"
export type { ReplayOptions } from "./layers/replay/Replay.ts"
export { recordingOf } from "./programs/Record.ts"
export { replay } from "./programs/Replay.ts"

/**
 * The recording in a file that `looplane bundle --as-fixture` wrote: its text, or the JSON value that was parsed from it.
 * Fails when it is none, is one of another version, or when any value of it is not the one that was written.
 */
export const loadRecording = (json: unknown): Effect.Effect<Recording, RecordingError> =>
  Effect.provide(Record.loadRecording(json), layerDigest)
