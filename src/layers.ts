/**
 * `looplane/layers`: the product's own implementations, to be provided as they are or swapped one by one.
 */
export {
  chooseSandbox,
  layerApply,
  layerNoCommands,
  layerRead,
  layerReceipt,
  layerReplayOf,
  layerRun,
  layerStore,
  layerUncontained,
  layerUserTree,
  makeModels,
  type RunOptions,
  type SandboxLayer,
  type SandboxRequest
} from "./layers/Live.ts"
export * as ApprovalHeadless from "./layers/approval/Headless.ts"
export * as ApprovalRemote from "./layers/approval/Remote.ts"
export * as ApprovalTerminal from "./layers/approval/Terminal.ts"
export * as Checks from "./layers/checks/Checks.ts"
export * as Git from "./layers/git/Git.ts"
export * as Journal from "./layers/journal/Store.ts"
export * as Providers from "./layers/model/Providers.ts"
export * as SandboxHost from "./layers/sandbox/Host.ts"
export * as SandboxNone from "./layers/sandbox/None.ts"
export * as Search from "./layers/search/Search.ts"
export * as SettingsEnvironment from "./layers/settings/Environment.ts"
export * as Tools from "./layers/tools/Tools.ts"
export * as Workspace from "./layers/workspace/Workspace.ts"
