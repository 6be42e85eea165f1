import { assert, describe, it as alone, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import { homedir, tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { seccompFilter } from "../../../src/layers/sandbox/Seccomp.ts"
import { HostEnvironment } from "../../../src/layers/sandbox/Environment.ts"
import { layerNone } from "../../../src/layers/sandbox/None.ts"
import type { Ceilings } from "../../../src/layers/sandbox/Warden.ts"
import { Sandbox, type SandboxCommand } from "../../../src/services/Sandbox.ts"
import { commandIn } from "../../support/commands.ts"
import { diffTrees, processesOf, snapshotTree } from "../../support/Leaks.ts"
import { found } from "../../support/sandbox.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "looplane-test-")))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** The folders of a run as they lie on a disk: a clone, its source, a home. */
const scene = Effect.map(temporary, (folder) => {
  const at = (...names: ReadonlyArray<string>) => join(folder, ...names)
  for (const name of ["run/clone/src", "source/src", "run/home/tmp", "outside"])
    mkdirSync(at(name), { recursive: true })
  writeFileSync(at("run/clone/src/a.js"), "clone\n")
  writeFileSync(at("source/src/a.js"), "source\n")
  writeFileSync(at("source/.env"), "SECRET=1\n")
  writeFileSync(at("outside/secret"), "SECRET=2\n")
  symlinkSync(at("outside/secret"), at("run/clone/link"))
  return { folder, at }
})

type Scene = Effect.Success<typeof scene>

const inScene = ({ at }: Scene, script: string, options: Partial<SandboxCommand> = {}) =>
  Effect.flatMap(Sandbox, (sandbox) =>
    sandbox.run(
      commandIn(at("run/clone"), ["sh", "-c", script], {
        place: { root: at("run/clone"), at: at("source"), writable: [at("run/home")], layers: [] },
        env: { HOME: at("run/home"), TMPDIR: at("run/home/tmp") },
        ...options
      })
    )
  )

const node = (script: string) => `exec '${process.execPath}' -e '${script}'`

const landlock = (cache_root: string, ceilings?: Ceilings) =>
  found({ backend: "landlock", cache_root, ...(ceilings === undefined ? {} : { ceilings }) })

const layerLandlock = (ceilings?: Ceilings) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { proof, sandbox } = yield* landlock(yield* temporary, ceilings)
      assert.deepStrictEqual(proof, { _tag: "Proved", kind: "landlock" })
      return sandbox === null ? layerNone : Layer.succeed(Sandbox, sandbox)
    })
  )

/** Whether this machine has what the backend needs: a kernel that knows truncation, and a compiler. */
const hasLandlock = (() => {
  const folder = mkdtempSync(join(tmpdir(), "looplane-test-"))
  try {
    const helper = join(folder, "helper")
    const source = join(import.meta.dirname, "../../../native/landlock.c")
    execFileSync("cc", ["-o", helper, source], { stdio: "ignore" })
    const filter = join(folder, "filter")
    writeFileSync(filter, seccompFilter(process.arch, "host") ?? "")
    execFileSync("sh", ["-c", `exec 3<'${filter}'; exec '${helper}' --read / -- true`], { stdio: "ignore" })
    return true
  } catch {
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})()

describe.skipIf(!hasLandlock)("a command in landlock", () => {
  layer(layerLandlock(), { excludeTestServices: true })((it) => {
    it.effect("works in the clone where that lies, and writes there, to its home and to its devices", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { exit_code, output } = yield* inScene(
          made,
          'pwd; cat src/a.js; echo new > src/b.js; mv src/b.js "$HOME/b.js"; ln src/a.js src/hard; mktemp >/dev/null; rm -r src/hard; echo gone > /dev/null; head -c 4 /dev/urandom | wc -c; git --version >/dev/null && echo git'
        )
        assert.strictEqual(output, `${made.at("run/clone")}\nclone\n4\ngit\n`)
        assert.strictEqual(exit_code, 0)
        assert.strictEqual(readFileSync(made.at("run/home/b.js"), "utf8"), "new\n")
        assert.deepStrictEqual(readdirSync(made.at("run/clone/src")), ["a.js"])
      })
    )

    it.effect("changes nothing outside, by no name and no link", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const before = [made.at("source"), made.at("outside")].map(snapshotTree)
        const { output } = yield* inScene(
          made,
          [
            `echo x > '${made.at("outside/new")}' && echo got-out`,
            `echo x >> '${made.at("outside/secret")}' && echo got-out`,
            "echo x >> link && echo got-out",
            `rm -f '${made.at("outside/secret")}' && echo got-out`,
            `mv '${made.at("outside/secret")}' . && echo got-out`,
            `ln '${made.at("outside/secret")}' hard && echo got-out`,
            `mkdir '${made.at("source/new")}' && echo got-out`,
            `ln -s /etc '${made.at("source/etc")}' && echo got-out`,
            `truncate -s 0 '${made.at("source/.env")}' && echo got-out`,
            "mv src ../moved && echo got-out",
            "echo x > /etc/looplane-test && echo got-out",
            "echo x > /tmp/looplane-test && echo got-out",
            "echo x > /dev/shm/looplane-test && echo got-out",
            "echo 1 > /proc/self/oom_score_adj && echo got-out",
            "true"
          ].join("; ")
        )
        assert.notInclude(output, "got-out")
        for (const file of ["/etc/looplane-test", "/tmp/looplane-test", "/dev/shm/looplane-test"])
          assert.isFalse(existsSync(file), file)
        assert.deepStrictEqual(
          [made.at("source"), made.at("outside")].flatMap((folder, at) =>
            diffTrees(before[at] ?? new Map(), snapshotTree(folder))
          ),
          []
        )
      })
    )

    it.effect("reads what the machine has, and nothing that is private", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { output } = yield* inScene(
          made,
          [
            "head -1 /etc/passwd",
            "ls /usr | grep -x bin",
            `cat '${made.at("source/.env")}' '${made.at("outside/secret")}' link /proc/self/root'${made.at("outside/secret")}'`,
            "cat /etc/shadow && echo got-in",
            "for at in / /tmp /var/tmp /run /home /root /mnt /media /srv /dev /dev/shm; do ls $at 2>/dev/null && echo got-in $at; done"
          ].join("; ")
        )
        assert.match(output, /^root:/)
        assert.include(output, "\nbin\n")
        assert.notInclude(output, "SECRET")
        assert.notInclude(output, "got-in")
        assert.include(output, "Permission denied")
      })
    )

    it.effect("finds its programs also where the repository is a home or /etc", () =>
      Effect.gen(function* () {
        const made = yield* scene
        for (const at of ["/etc", homedir(), "/"]) {
          const place = { root: made.at("run/clone"), at, writable: [], layers: [] }
          const { output } = yield* inScene(made, "head -c 4 /etc/passwd; ls ~ /root && echo got-in", {
            place
          })
          assert.match(output, /^root/, at)
          assert.notInclude(output, "got-in", at)
        }
      })
    )

    it.effect("has no socket of any kind, and pipes to its children all the same", () =>
      Effect.gen(function* () {
        const made = yield* scene
        let arrivals = 0
        const listen = (at: { port: number; host: string } | { path: string }) =>
          Effect.acquireRelease(
            Effect.callback<ReturnType<typeof createServer>>((resume) => {
              const server = createServer((socket) => {
                arrivals += 1
                socket.destroy()
              })
              server.listen(at, () => resume(Effect.succeed(server)))
            }),
            (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
          )
        const server = yield* listen({ port: 0, host: "127.0.0.1" })
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        yield* listen({ path: made.at("run/clone/socket") })
        yield* listen({ path: `\0${made.folder}` })
        const tried = [
          `{ host: "127.0.0.1", port: ${port} }`,
          `{ path: "socket" }`,
          `{ path: "\\0${made.folder}" }`
        ].map(
          (to) =>
            `require("net").connect(${to}).on("error", (e) => console.log(e.code)).on("connect", () => console.log("got-out"))`
        )
        const { output } = yield* inScene(
          made,
          node(
            `${tried.join(";")}; require("dgram").createSocket("udp4").on("error", (e) => console.log(e.code)).send("x", ${port}, "127.0.0.1"); require("net").createServer().on("error", (e) => console.log(e.code)).listen(0); require("child_process").execFileSync("true"); console.log("child")`
          )
        )
        assert.strictEqual(arrivals, 0)
        assert.notInclude(output, "got-out")
        assert.include(output, "child\n")
        assert.isAtLeast(output.split("\n").filter((line) => line === "EPERM").length, 3, output)
      })
    )

    it.effect(
      "neither signals other processes nor looks into them, also as root, and has no capability",
      () =>
        Effect.gen(function* () {
          const made = yield* scene
          const other = yield* Effect.acquireRelease(
            Effect.sync(() => spawn("sleep", ["300"], { env: { PROBE: "SECRET=3" }, stdio: "ignore" })),
            (child) => Effect.sync(() => child.kill("SIGKILL"))
          )
          const { output } = yield* inScene(
            made,
            [
              `for pid in ${other.pid} ${process.pid} $PPID; do kill -0 $pid && echo got-out; kill -CONT $pid && echo got-out; cat /proc/$pid/environ /proc/$pid/maps && echo got-out; ls /proc/$pid/fd /proc/$pid/root/ && echo got-out; done`,
              `prlimit --pid ${other.pid} --nofile=10:10 && echo got-out`,
              "sh -c 'kill -0 $PPID && echo own'",
              "grep -E 'Cap...:|NoNewPrivs|Seccomp:' /proc/self/status; ulimit -c; ulimit -Hc"
            ].join("; ")
          )
          const lines = output.split("\n").map((line) => line.replaceAll(/\s+/g, " ").trim())
          assert.notInclude(output, "SECRET")
          assert.notInclude(output, "got-out")
          assert.includeMembers(lines, ["own", "NoNewPrivs: 1", "Seccomp: 2", "0"])
          // Without capabilities, an ordinary user has the bounding set of everybody.
          for (const name of ["Inh", "Prm", "Eff", "Amb", ...(process.getuid?.() === 0 ? ["Bnd"] : [])])
            assert.include(lines, `Cap${name}: 0000000000000000`)
        })
    )

    it.effect("makes no namespace, no mount and no shared memory", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { output } = yield* inScene(
          made,
          "unshare -U true && echo got-out; mount -t tmpfs none src && echo got-out; ipcmk -M 10 && echo got-out; mknod device b 8 0 && echo got-out; true"
        )
        assert.notInclude(output, "got-out")
      })
    )

    it.effect("leaves nothing running, also not what left its session and forgot its environment", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { exit_code } = yield* inScene(
          made,
          "setsid sleep 300 & (setsid env -i sh -c 'sleep 300 & sleep 300' &); nohup sh -c 'sleep 300 & sleep 300' >/dev/null 2>&1 & sleep 0.2; echo started > mark"
        )
        assert.strictEqual(exit_code, 0)
        assert.isTrue(existsSync(made.at("run/clone/mark")))
        assert.deepStrictEqual(processesOf("none", [made.folder]), [])
      })
    )

    it.effect("cannot end who watches it, and ends whole when that is asked to", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { exit_code, output } = yield* inScene(made, "kill -9 $PPID; echo alive; kill -9 -1; kill -9 0")
        assert.strictEqual(exit_code, 137)
        assert.include(output, "alive\n")
        const late = yield* inScene(made, "(setsid env -i sh -c 'sleep 300; true' &); sleep 300", {
          timeout_ms: 500
        })
        assert.deepInclude(late, { exit_code: 124, timed_out: true })
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
        for (const code of [1, 7, 126])
          assert.strictEqual((yield* inScene(made, `exit ${code}`)).exit_code, code)
      })
    )

    it.effect("is not started when its program is not one that it may read, or asks for the network", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const tool = made.at("outside/hidden-tool")
        writeFileSync(tool, "#!/bin/sh\necho ran\n", { mode: 0o755 })
        const attempt = (options: Partial<SandboxCommand>) =>
          Effect.map(
            Effect.flip(inScene(made, "", options)),
            ({ message, reason }) => `${reason}: ${message}`
          )
        assert.match(yield* attempt({ argv: ["no-such-program"] }), /^not_found: .*not found on PATH/)
        assert.match(
          yield* attempt({ argv: [tool] }),
          /^refused: .*which the sandbox does not show: name its directory in sandbox_read_roots/
        )
        assert.match(
          yield* attempt({ argv: ["./gone"] }),
          /^refused: "\.\/gone" was not started: \.\/gone: No such/
        )
        assert.match(yield* attempt({ argv: ["true"], network: "host" }), /^refused: .*refuses the network/)
        writeFileSync(made.at("run/clone/own"), "#!/bin/sh\necho own; pwd\n", { mode: 0o755 })
        assert.strictEqual(
          (yield* inScene(made, "", { argv: ["./own"] })).output,
          `own\n${made.at("run/clone")}\n`
        )
      })
    )
  })
})

describe.skipIf(!hasLandlock)("what landlock does not limit", () => {
  const few: Ceilings = { processes: 60, memory_bytes: 300 * 1024 * 1024, disk_bytes: null }
  layer(layerLandlock(few), { excludeTestServices: true })((it) => {
    it.effect("a fork bomb is stopped, and nothing of it is left", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const bomb = yield* inScene(made, "bomb() { bomb | bomb & }; bomb; sleep 60", { timeout_ms: 30_000 })
        assert.deepInclude(bomb, { exit_code: 137, stopped: "it made more than 60 processes" })
        assert.deepStrictEqual(processesOf("none", [made.folder]), [])
      })
    )

    it.effect("also one whose parts leave their session and forget their environment", () =>
      Effect.gen(function* () {
        const made = yield* scene
        writeFileSync(
          made.at("run/clone/bomb"),
          "#!/bin/sh\nsetsid env -i ./bomb & setsid env -i ./bomb & exec sleep 20\n",
          { mode: 0o755 }
        )
        const bomb = yield* inScene(made, "./bomb", { timeout_ms: 30_000 })
        assert.deepInclude(bomb, { exit_code: 137, stopped: "it made more than 60 processes" })
        assert.deepStrictEqual(processesOf("none", [made.folder]), [])
      })
    )

    it.effect("neither is one that eats memory", () =>
      Effect.gen(function* () {
        const made = yield* scene
        const greedy = yield* inScene(
          made,
          node("const all = []; setInterval(() => all.push(Buffer.alloc(32 << 20, 1)), 5)"),
          { timeout_ms: 30_000 }
        )
        assert.deepInclude(greedy, { exit_code: 137, stopped: "it took more than 300 MiB of memory" })
      })
    )
  })
})

describe.skipIf(!hasLandlock)("the landlock backend", () => {
  const pathOf = (...programs: ReadonlyArray<string>) =>
    Effect.map(temporary, (folder) => {
      for (const name of programs)
        symlinkSync(
          execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim(),
          join(folder, name)
        )
      return folder
    })
  const withPath = (path: string) => Effect.provideService(HostEnvironment, { HOME: "/nowhere", PATH: path })

  alone.effect(
    "compiles its helper once, and again when that is not what it was",
    () =>
      Effect.gen(function* () {
        const cache = yield* temporary
        assert.strictEqual((yield* landlock(cache)).proof._tag, "Proved")
        const [helper = "", ...others] = readdirSync(cache).filter((name) => /^landlock-\w{64}$/.test(name))
        assert.deepStrictEqual(others, [])
        assert.deepStrictEqual(readdirSync(cache).toSorted(), [helper, `${helper}.sha256`, "sandbox.json"])
        const file = join(cache, helper)
        assert.strictEqual(statSync(file).mode & 0o777, 0o700)
        const { ino } = statSync(file)
        const bytes = readFileSync(file)
        const proofs = readFileSync(join(cache, "sandbox.json"), "utf8")
        assert.strictEqual((yield* landlock(cache)).proof._tag, "Proved")
        assert.strictEqual(statSync(file).ino, ino)
        assert.strictEqual(readFileSync(join(cache, "sandbox.json"), "utf8"), proofs)
        writeFileSync(file, "#!/bin/sh\nshift 2; exec true\n")
        assert.strictEqual((yield* landlock(cache)).proof._tag, "Proved")
        assert.isTrue(readFileSync(file).equals(bytes))
        chmodSync(file, 0o777)
        assert.strictEqual((yield* landlock(cache)).proof._tag, "Proved")
        assert.strictEqual(statSync(file).mode & 0o777, 0o700)
      }),
    60_000
  )

  alone.effect("is not proved without a compiler, or a folder of the user's own", () =>
    Effect.gen(function* () {
      const cache = yield* temporary
      const path = yield* pathOf("sh")
      assert.deepStrictEqual((yield* landlock(cache).pipe(withPath(path))).proof, {
        _tag: "NotProved",
        reason: "there is no C compiler (cc) on PATH to build landlock's helper",
        remedy: "install a C compiler (apt-get install gcc libc6-dev, dnf install gcc)"
      })
      assert.deepStrictEqual(readdirSync(cache), [])
      chmodSync(cache, 0o777)
      const { proof, sandbox } = yield* landlock(cache)
      assert.deepInclude(proof, {
        _tag: "NotProved",
        reason: "landlock's helper has no folder that is the user's alone"
      })
      assert.isNull(sandbox)
    })
  )

  alone.effect("is not proved by a compiler that makes something else", () =>
    Effect.gen(function* () {
      const cache = yield* temporary
      const path = yield* temporary
      const fake = (body: string) => writeFileSync(join(path, "cc"), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
      fake("echo 'x.c:1: error: no headers'; exit 1")
      const broken = yield* landlock(cache).pipe(withPath(`${path}:/usr/bin:/bin`))
      assert.deepInclude(broken.proof, {
        _tag: "NotProved",
        reason: "cc cannot build landlock's helper (x.c:1: error: no headers)"
      })
      fake(
        `while [ "$1" != -o ]; do shift; done; printf '#!/bin/sh\\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"' > "$2"`
      )
      const hollow = yield* landlock(cache).pipe(withPath(`${path}:/usr/bin:/bin`))
      assert.isNull(hollow.sandbox)
      const reason = hollow.proof._tag === "NotProved" ? hollow.proof.reason : ""
      for (const hole of [
        "it can change files that are not its own",
        "it can read what is hidden",
        "it can look into other processes",
        "it can signal other processes",
        "it can reach listeners outside",
        "it may gain privileges",
        "no filter is on its system calls"
      ])
        assert.include(reason, hole)
    })
  )

  alone.effect(
    "is what auto takes where there is no bubblewrap, and both reasons are told where there is neither",
    () =>
      Effect.gen(function* () {
        const cache = yield* temporary
        const host = { ...process.env, PATH: yield* pathOf("cc", "sh", "as", "ld", "node") }
        const { proof } = yield* found({ cache_root: cache }).pipe(
          Effect.provideService(HostEnvironment, host)
        )
        assert.deepStrictEqual(proof, { _tag: "Proved", kind: "landlock" })
        const asked = yield* found({ backend: "bubblewrap", cache_root: cache }).pipe(
          Effect.provideService(HostEnvironment, host)
        )
        assert.deepInclude(asked.proof, { _tag: "NotProved", reason: "bubblewrap is not on PATH" })
        const neither = yield* found({ cache_root: yield* temporary }).pipe(withPath(dirname(cache)))
        assert.deepStrictEqual(neither.proof, {
          _tag: "NotProved",
          reason:
            "bubblewrap is not on PATH: install bubblewrap (apt-get install bubblewrap, dnf install bubblewrap); or there is no C compiler (cc) on PATH to build landlock's helper",
          remedy: "install a C compiler (apt-get install gcc libc6-dev, dnf install gcc)"
        })
      })
  )
})
