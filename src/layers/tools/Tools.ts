/**
 * The tools of a run. Their order is fixed, reading first, run_check last and only where a check is declared: the
 * definitions are part of what a provider caches, so a change of order or of a word costs every cached prefix.
 */
import { Effect, Layer } from "effect"
import { Search } from "../../services/Search.ts"
import { type Tool, Tools } from "../../services/Tools.ts"
import { makeRunCheck } from "./CheckTool.ts"
import { applyPatchTool, createFile, replaceTextTool } from "./EditTools.ts"
import { gitDiff, listFiles, readFile } from "./ReadTools.ts"
import { makeSearchText } from "./SearchTool.ts"

export const layer = Layer.effect(
  Tools,
  Effect.gen(function* () {
    const searchText = makeSearchText(yield* Search)
    const always: ReadonlyArray<Tool> = [
      listFiles,
      readFile,
      searchText,
      gitDiff,
      replaceTextTool,
      createFile,
      applyPatchTool
    ]
    return Tools.of({
      toolset: ({ check_names }) => {
        const [first, ...rest] = check_names
        return first === undefined ? always : [...always, makeRunCheck([first, ...rest])]
      }
    })
  })
)
