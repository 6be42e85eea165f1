import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { absolutePath, HostEnvironment } from "../../../src/layers/sandbox/Environment.ts"
import { Sandbox, type SandboxCommand } from "../../../src/services/Sandbox.ts"
import { commandIn } from "../../support/commands.ts"
import { diffTrees, processesOf, snapshotTree } from "../../support/Leaks.ts"
import { found, hasBubblewrap, layerFound } from "../../support/sandbox.ts"

/** The folders of a run as they lie on a disk: a clone, its source with dependencies, a home. */
const scene = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "looplane-test-")))
    const at = (...names: ReadonlyArray<string>) => join(folder, ...names)
    for (const name of ["run/clone/src", "source/src", "source/node_modules/.bin", "run/home"])
      mkdirSync(at(name), { recursive: true })
    writeFileSync(at("run/clone/src/a.js"), "clone\n")
    writeFileSync(at("source/src/a.js"), "source\n")
    writeFileSync(at("source/.env"), "SECRET=1\n")
    writeFileSync(at("source/node_modules/index.js"), "installed\n")
    writeFileSync(
      at("source/node_modules/.bin/tool"),
      "#!/bin/sh\ncat ../node_modules/index.js src/a.js 2>/dev/null; pwd\n"
    )
    chmodSync(at("source/node_modules/.bin/tool"), 0o755)
    symlinkSync("../src/a.js", at("source/node_modules/linked.js"))
    return { folder, at }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

type Scene = Effect.Success<typeof scene>

const inScene = ({ at }: Scene, script: string, options: Partial<SandboxCommand> = {}) =>
  Effect.flatMap(Sandbox, (sandbox) =>
    sandbox.run(
      commandIn(at("run/clone"), ["sh", "-c", script], {
        place: {
          root: at("run/clone"),
          at: at("source"),
          writable: [at("run/home")],
          layers: [{ from: at("source/node_modules"), path: "node_modules" }]
        },
        env: { HOME: at("run/home") },
        ...options
      })
    )
  )

describe.skipIf(!hasBubblewrap)("a command in bubblewrap", () => {
  layer(layerFound(), { excludeTestServices: true })((it) => {
    it.effect("works in the clone at the source's own path, and what it writes there is on the disk", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const before = snapshotTree(made.at("source"))
        const { exit_code, output } = yield* inScene(
          made,
          "pwd; cat src/a.js; ls -a; echo new > src/b.js; ls $HOME"
        )
        assert.strictEqual(exit_code, 0, output)
        assert.strictEqual(output, `${made.at("source")}\nclone\n.\n..\nnode_modules\nsrc\n`)
        assert.strictEqual(readFileSync(made.at("run/clone/src/b.js"), "utf8"), "new\n")
        assert.deepStrictEqual(diffTrees(before, snapshotTree(made.at("source"))), [])
      })
    )

    it.effect(
      "sees installed dependencies, links into the clone, and nothing of what it does to them stays",
      () =>
        Effect.gen(function* () {
          const made = yield* scene
          const before = snapshotTree(made.at("source"))
          const { output } = yield* inScene(
            made,
            [
              "cat node_modules/index.js node_modules/linked.js",
              "echo poisoned > node_modules/index.js; rm node_modules/.bin/tool; mkdir node_modules/new; cat node_modules/index.js"
            ].join("; ")
          )
          assert.strictEqual(output, "installed\nclone\npoisoned\n")
          assert.deepStrictEqual(diffTrees(before, snapshotTree(made.at("source"))), [])
          const again = yield* inScene(made, "cat node_modules/index.js; ls node_modules/.bin")
          assert.strictEqual(again.output, "installed\ntool\n")
          assert.deepStrictEqual(readdirSync(made.at("run")).toSorted(), ["clone", "home"])
        })
    )

    it.effect("of a repository at a place that programs need is shown where the clone is", () =>
      Effect.gen(function* () {
        const made = yield* scene
        for (const at of ["/", "/etc", "/usr/share/x", process.env["HOME"] ?? "/root"]) {
          const place = { root: made.at("run/clone"), at, writable: [made.at("run/home")], layers: [] }
          const { exit_code, output } = yield* inScene(made, "pwd; cat src/a.js; test -e /etc/passwd", {
            place
          })
          assert.strictEqual(output, `${made.at("run/clone")}\nclone\n`, at)
          assert.strictEqual(exit_code, 0)
        }
      })
    )

    it.effect("is the user, in a machine of its own", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { output } = yield* inScene(
          made,
          "nice; id -u; hostname; ls /proc | grep -c '^[0-9]'; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; ls /sys/class/net"
        )
        const lines = output.split("\n").map((line) => line.replaceAll(/\s+/g, " ").trim())
        assert.deepStrictEqual(lines.slice(0, 3), ["5", String(process.getuid?.()), "looplane"])
        assert.isBelow(Number(lines[3]), 8)
        assert.includeMembers(lines, ["NoNewPrivs: 1", "Seccomp: 2", "CapEff: 0000000000000000"])
      })
    )

    it.effect("leaves nothing running, also not what left its session", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { exit_code } = yield* inScene(
          made,
          "setsid sleep 300 & nohup sh -c 'sleep 300 & sleep 300' >/dev/null 2>&1 & echo started > mark"
        )
        assert.strictEqual(exit_code, 0)
        assert.isTrue(existsSync(made.at("run/clone/mark")))
        assert.deepStrictEqual(processesOf("none", [made.folder]), [])
      })
    )

    it.effect("ends at its time-out with everything in it, and tells a signal from an exit", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const late = yield* inScene(made, "trap '' TERM; sleep 300 & sleep 300", { timeout_ms: 700 })
        assert.deepInclude(late, { exit_code: 124, timed_out: true, stopped: null })
        assert.deepStrictEqual(processesOf("none", [made.folder]), [])
        assert.strictEqual((yield* inScene(made, "kill -SEGV $$")).exit_code, 139)
        assert.strictEqual((yield* inScene(made, "exit 1")).exit_code, 1)
        assert.strictEqual((yield* inScene(made, "exit 7")).exit_code, 7)
      })
    )

    it.effect(
      "reaches this machine's network only when it is told to, and its files no more than before",
      () =>
        Effect.gen(function* () {
          const made = yield* scene
          let arrivals = 0
          const server = createServer((socket) => {
            arrivals += 1
            socket.end()
          })
          const port = yield* Effect.acquireRelease(
            Effect.promise(
              () =>
                new Promise<number>((resolve) =>
                  server.listen(0, "127.0.0.1", () => {
                    const address = server.address()
                    resolve(typeof address === "object" && address !== null ? address.port : 0)
                  })
                )
            ),
            () => Effect.promise(() => new Promise((resolve) => server.close(resolve)))
          )
          const script = `node -e 'require("net").connect(${port}, "127.0.0.1").on("connect", () => process.exit(0)).on("error", () => process.exit(3))'; echo $?; cat /etc/resolv.conf >/dev/null && echo resolves; cat ${made.at("source/.env")}`
          assert.match((yield* inScene(made, script)).output, /^3\n/)
          assert.strictEqual(arrivals, 0)
          const { output } = yield* inScene(made, script, { network: "host" })
          assert.match(output, /^0\nresolves\n/)
          assert.notInclude(output, "SECRET")
          assert.strictEqual(arrivals, 1)
        })
    )

    it.effect(
      "finds the programs of the user's own tree in the place, as an activated environment does",
      () =>
        Effect.gen(function* () {
          const made = yield* scene
          mkdirSync(made.at("source/.venv/bin"), { recursive: true })
          writeFileSync(made.at("source/.venv/bin/activated"), "#!/bin/sh\necho from the environment\n", {
            mode: 0o755
          })
          const { sandbox } = yield* found().pipe(
            Effect.provideService(HostEnvironment, {
              ...process.env,
              PATH: `${made.at("source/.venv/bin")}:${process.env["PATH"]}`
            })
          )
          if (sandbox === null) return assert.fail("no sandbox")
          const place = {
            root: made.at("run/clone"),
            at: made.at("source"),
            writable: [made.at("run/home")],
            layers: [{ from: made.at("source/.venv"), path: ".venv" }]
          }
          const { output } = yield* sandbox.run(commandIn(made.at("run/clone"), ["activated"], { place }))
          assert.strictEqual(output, "from the environment\n")
        })
    )

    it.effect("inherits nothing that looplane was started with", () =>
      Effect.gen(function* () {
        const made = yield* scene
        mkdirSync(made.at("secret"))
        writeFileSync(made.at("secret/s"), "SECRET\n")
        const program = `
          import { found } from ${JSON.stringify(join(import.meta.dirname, "../../support/sandbox.ts"))}
          import { commandIn } from ${JSON.stringify(join(import.meta.dirname, "../../support/commands.ts"))}
          import { Effect } from "effect"
          const { sandbox } = await Effect.runPromise(found())
          const script = "cat /proc/self/fd/200/s; echo x > /proc/self/fd/200/planted; ls /proc/self/fd | tr '\\n' ' '"
          const result = await Effect.runPromise(sandbox.run(commandIn(${JSON.stringify(made.at("run/clone"))}, ["sh", "-c", script])))
          console.log(result.output)`
        const file = join(import.meta.dirname, `.descriptors-${process.pid}.mts`)
        writeFileSync(file, program)
        const output = execFileSync(
          "bash",
          ["-c", 'exec 200<"$1"; exec "$2" "$3"', "bash", made.at("secret"), process.execPath, file],
          {
            encoding: "utf8"
          }
        )
        rmSync(file)
        assert.notInclude(output, "SECRET")
        assert.notInclude(output, "200 ")
        assert.deepStrictEqual(readdirSync(made.at("secret")), ["s"])
      })
    )

    it.effect("of which the dependencies cannot be shown is not started, and it is said why", () =>
      Effect.gen(function* () {
        const made = yield* scene
        mkdirSync(made.at('quo"te/node_modules'), { recursive: true })
        mkdirSync(made.at("elsewhere"))
        symlinkSync(made.at("elsewhere"), made.at("run/clone/packages"))
        const attempt = (from: string, path: string) =>
          Effect.map(
            Effect.flip(
              inScene(made, "true", {
                place: {
                  root: made.at("run/clone"),
                  at: made.at("source"),
                  writable: [],
                  layers: [{ from, path }]
                }
              })
            ),
            ({ message, reason }) => `${reason}: ${message}`
          )
        assert.match(
          yield* attempt(made.at('quo"te/node_modules'), "node_modules"),
          /^refused: .*quotation mark.*--deps copy/
        )
        assert.match(
          yield* attempt(made.at("source/node_modules"), "packages/node_modules"),
          /^refused: .*packages is a symbolic link/
        )
        assert.deepStrictEqual(readdirSync(made.at("elsewhere")), [])
        // What a command says is no word of the sandbox's.
        assert.strictEqual((yield* inScene(made, "echo bwrap: no; exit 1")).exit_code, 1)
      })
    )

    it.effect("is not started when its program is not the one outside", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const hidden = made.at("tools")
        mkdirSync(hidden)
        writeFileSync(join(hidden, "hidden-tool"), "#!/bin/sh\necho ran\n", { mode: 0o755 })
        const attempt = (argv: SandboxCommand["argv"]) =>
          Effect.map(
            Effect.flip(inScene(made, "", { argv })),
            ({ message, reason }) => `${reason}: ${message}`
          )
        assert.match(yield* attempt(["no-such-program-here"]), /^not_found: .*not found on PATH/)
        assert.match(
          yield* attempt([join(hidden, "hidden-tool")]),
          /^refused: .*which the sandbox does not show: name its directory in sandbox_read_roots/
        )
        writeFileSync(made.at("run/clone/own"), "#!/bin/sh\necho own; pwd\n", { mode: 0o755 })
        assert.strictEqual(
          (yield* inScene(made, "", { argv: ["./own"] })).output,
          `own\n${made.at("source")}\n`
        )
        assert.match((yield* inScene(made, "", { argv: ["node_modules/.bin/tool"] })).output, /source\n$/)
        assert.match(yield* attempt(["./gone"]), /^refused: "\.\/gone" was not started: execvp/)
      })
    )
  })
})

describe.skipIf(!hasBubblewrap)("what bubblewrap is not", () => {
  const it = layer(
    layerFound({ ceilings: { processes: 60, memory_bytes: 300 * 1024 * 1024, disk_bytes: null } }),
    { excludeTestServices: true }
  )
  it((it) => {
    it.effect("a fork bomb is stopped, and nothing of it is left", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const bomb = yield* inScene(made, "bomb() { bomb | bomb & }; bomb; sleep 60", { timeout_ms: 30_000 })
        assert.deepInclude(bomb, { exit_code: 137, stopped: "it made more than 60 processes" })
        assert.deepStrictEqual(processesOf("none", [made.folder]), [])
      })
    )

    it.effect("neither is one that fills a directory that is memory", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const filled = yield* inScene(
          made,
          "for i in 1 2 3 4 5 6 7 8; do head -c 60000000 /dev/zero > /tmp/$i; done; sleep 20",
          {
            timeout_ms: 30_000
          }
        )
        assert.deepInclude(filled, { exit_code: 137, stopped: "it took more than 300 MiB of memory" })
      })
    )

    it.effect("neither is one that eats memory", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const greedy = yield* inScene(
          made,
          `exec '${process.execPath}' -e 'const all = []; setInterval(() => all.push(Buffer.alloc(32 << 20, 1)), 5)'`,
          { timeout_ms: 30_000 }
        )
        assert.deepInclude(greedy, { exit_code: 137, stopped: "it took more than 300 MiB of memory" })
      })
    )
  })
})

describe.skipIf(!hasBubblewrap)("the programs of a user", () => {
  const it = layer(layerFound(), { excludeTestServices: true })
  it((it) => {
    it.effect("are shown wherever they lie, and nothing beside them is", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const home = made.at("user")
        mkdirSync(join(home, "tool-1.2/bin"), { recursive: true })
        mkdirSync(join(home, "tool-1.2/lib"), { recursive: true })
        mkdirSync(join(home, "bin"), { recursive: true })
        mkdirSync(join(home, ".cargo"), { recursive: true })
        writeFileSync(join(home, "tool-1.2/lib/words"), "from its own library\n")
        writeFileSync(join(home, "tool-1.2/bin/talk"), `#!/bin/sh\ncat '${home}/tool-1.2/lib/words'\n`, {
          mode: 0o755
        })
        symlinkSync("../tool-1.2/bin/talk", join(home, "bin/talk"))
        writeFileSync(join(home, ".netrc"), "password\n")
        mkdirSync(join(home, ".ssh"))
        writeFileSync(join(home, ".ssh/id"), "password of a key\n")
        symlinkSync("../.ssh/id", join(home, "bin/k"))
        mkdirSync(join(home, "proj"))
        writeFileSync(join(home, "proj/.env"), "password of a project\n")
        writeFileSync(join(home, "proj/run.sh"), "#!/bin/sh\necho ran\n", { mode: 0o755 })
        symlinkSync("../proj/run.sh", join(home, "bin/run"))
        writeFileSync(join(home, ".cargo/config"), '[registry]\ntoken = "password"\n')
        const later = made.at("later")
        writeFileSync(join(home, ".cargo/credentials.toml"), "token\n")
        writeFileSync(join(home, ".cargo/config.toml"), "[build]\n")
        const environment = {
          HOME: home,
          PATH: `${join(home, "bin")}:relative:${made.at("own/.bin")}:/usr/bin:/bin`,
          API_KEY: "secret"
        }
        const { sandbox } = yield* found({ own: [made.at("own")], hidden: [later] }).pipe(
          Effect.provideService(HostEnvironment, environment)
        )
        assert.isNotNull(sandbox)
        if (sandbox === null) return
        const run = (script: string) =>
          sandbox
            .run(
              commandIn(made.at("run/clone"), ["sh", "-c", script], { env: { HOME: made.at("run/home") } })
            )
            .pipe(Effect.provideService(HostEnvironment, environment))
        assert.strictEqual((yield* run("talk")).output, "from its own library\n")
        assert.strictEqual((yield* run("run")).output, "ran\n")
        mkdirSync(later)
        writeFileSync(join(later, "journal"), "password of a run\n")
        const around = `cat '${home}/proj/.env' '${later}/journal' "$CARGO_HOME/config"; ls -A '${home}/.ssh' '${home}/proj'`
        assert.notInclude((yield* run(around)).output, "password")
        const { output } = yield* run(
          `ls -A '${home}'; cat '${home}/.netrc'; cat '${home}/.cargo/credentials.toml'; cat "$CARGO_HOME/config.toml"; echo $PATH; echo $API_KEY`
        )
        assert.notInclude(output, "password")
        assert.notInclude(output, "token")
        assert.notInclude(output, "secret")
        assert.include(output, "[build]\n")
        assert.include(output, `${join(home, "bin")}:/usr/bin:/bin\n\n`)
        assert.notInclude(output, "bert")
      })
    )

    it.effect("that looplane itself needs come from no repository, whatever npm or a user put on PATH", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const ran = made.at("ran")
        for (const directory of ["source/node_modules/.bin", "source/bin"]) {
          mkdirSync(made.at(directory), { recursive: true })
          for (const name of ["bwrap", "unshare", "nice", "bash", "git"])
            writeFileSync(
              made.at(directory, name),
              `#!/bin/sh\necho ${name} >> '${ran}'\nexec /usr/bin/${name} "$@"\n`,
              {
                mode: 0o755
              }
            )
        }
        const environment = {
          ...process.env,
          PATH: `${made.at("source/node_modules/.bin")}:${made.at("source/bin")}:${process.env["PATH"]}`
        }
        const { proof, sandbox } = yield* found({ repository: made.at("source") }).pipe(
          Effect.provideService(HostEnvironment, environment)
        )
        assert.deepStrictEqual(proof, { _tag: "Proved", kind: "bubblewrap" })
        if (sandbox === null) return
        yield* sandbox
          .run(commandIn(made.at("run/clone"), ["true"]))
          .pipe(Effect.provideService(HostEnvironment, environment))
        assert.notInclude(absolutePath(environment), "node_modules")
        assert.isFalse(existsSync(ran))
      })
    )

    it.effect("that are git's do not run what a repository says", () =>
      Effect.gen(function* () {
        const made = yield* scene
        execFileSync("git", ["init", "--quiet", made.at("run/clone")])
        const { output } = yield* inScene(
          made,
          "git status --porcelain --ignored; git config --list --show-scope | grep -c global"
        )
        assert.include(output, "?? src/")
        assert.match(output, /\n0\n$/)
      })
    )
  })
})
