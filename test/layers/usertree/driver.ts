// A process of its own that applies a patch and dies on request, or watches over one that does.
//   driver.ts apply ROOT SOURCE-FILE STEP WATCH-SOCKET   STEP: the number of the step to die at; SOCKET "-": no watcher
//   driver.ts commit ROOT SOURCE-FILE STEP WATCH-SOCKET   applies and commits
//   driver.ts undo ROOT - STEP WATCH-SOCKET
//   driver.ts watch SOCKET ROOT
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import type { PatchSource } from "../../../src/services/UserTree.ts"
import { about, applySource, withTree } from "./trees.ts"

const [program = "", mode = "", ...args] = process.argv.slice(1)

const source = (file: string): PatchSource => {
  const value: PatchSource & { readonly patch: string } = JSON.parse(readFileSync(file, "utf8"))
  return { ...value, patch: Buffer.from(value.patch, "base64") }
}

const dieAt = (step: number) => {
  let count = 0
  return () =>
    Effect.sync(() => {
      if (count++ === step) process.kill(process.pid, "SIGKILL")
    })
}

const main = async () => {
  if (mode === "watch") {
    const [socket = "", root = ""] = args
    const attending = connect(socket)
    process.stdout.write("watching\n")
    await new Promise<void>((resolve) => process.stdin.once("end", resolve).resume())
    await Effect.runPromise(
      Effect.retry(
        withTree(root, () => Effect.void),
        { times: 200 }
      )
    )
    attending.destroy()
    process.exit(0)
  }
  const [root = "", file = "", step = "", socket = "-"] = args
  const options = {
    steps: dieAt(Number(step)),
    ...(socket === "-" ? {} : { watcher: [process.execPath, program, "watch", socket] as const })
  }
  if (mode === "apply" || mode === "commit")
    await Effect.runPromise(applySource(root, source(file), { ...options, commit: mode === "commit" }))
  else
    await Effect.runPromise(
      withTree(
        root,
        (tree) =>
          Effect.gen(function* () {
            const record = yield* tree.last(about.run_id)
            if (record !== null) yield* tree.undo(record)
          }),
        options
      )
    )
}

await main()
