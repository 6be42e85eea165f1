/**
 * `looplane/testing`: the fakes that looplane itself is tested with.
 */
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
export { loadRecording, recordingOf } from "./programs/Record.ts"
export { replay } from "./programs/Replay.ts"
