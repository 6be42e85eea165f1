/**
 * Ways out of a sandbox, tried for real against every backend that this machine proves, and judged from outside: files,
 * listeners and processes of the host must be what they were, whatever the command says of itself.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawn } from "node:child_process"
import { createSocket } from "node:dgram"
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createServer, type ListenOptions } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { SandboxBackend } from "../../../src/domain/SandboxRule.ts"
import { HostEnvironment } from "../../../src/layers/sandbox/Environment.ts"
import { commandIn } from "../../support/commands.ts"
import { diffTrees, processesOf, snapshotTree } from "../../support/Leaks.ts"
import { gitEnvironment } from "../../support/Repo.ts"
import { found } from "../../support/sandbox.ts"

/** In places that a sandbox hides, and in one that it may show. */
const scene = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "looplane-escape-")))
    const seen = mkdtempSync(join(import.meta.dirname, "../../../node_modules/.looplane-escape-"))
    const at = (...names: ReadonlyArray<string>) => join(folder, ...names)
    for (const name of ["run/clone/src", "run/home", "home/.ssh", "source/src", "other-run"])
      mkdirSync(at(name), { recursive: true })
    writeFileSync(at("home/.ssh/id"), "SECRET-KEY\n")
    writeFileSync(at("home/.bashrc"), "# mine\n")
    writeFileSync(at("source/src/a.js"), "source\n")
    writeFileSync(at("other-run/events.jsonl"), "SECRET-RUN\n")
    writeFileSync(at("run/clone/src/a.js"), "clone\n")
    writeFileSync(join(seen, "canary"), "canary\n")
    mkdirSync(join(seen, "directory"))
    symlinkSync("canary", join(seen, "link"))
    linkSync(join(seen, "canary"), join(seen, "twin"))
    const git = (...args: ReadonlyArray<string>) =>
      execFileSync("git", args, { cwd: at("source"), env: gitEnvironment(folder), stdio: "pipe" })
    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "base")
    git("gc", "--quiet")
    mkdirSync(at("source/node_modules"))
    writeFileSync(at("source/node_modules/index.js"), "installed\n")

    let arrivals = 0
    const servers = await Promise.all(
      [
        { host: "127.0.0.1", port: 0 },
        { path: at("socket") },
        { path: join(seen, "socket") },
        { path: `\0${folder}` }
      ].map((where: ListenOptions) => {
        const server = createServer((socket) => {
          arrivals += 1
          socket.destroy()
        })
        return new Promise<typeof server>((resolve) => server.listen(where, () => resolve(server)))
      })
    )
    const address = servers[0]?.address()
    const tcp = typeof address === "object" && address !== null ? address.port : 0
    const datagrams = createSocket("udp4", () => void (arrivals += 1))
    await new Promise<void>((resolve) => datagrams.bind(0, "127.0.0.1", resolve))
    const bystander = spawn("sleep", ["600"], { stdio: "ignore" })
    return {
      ...{ folder, seen, at, tcp },
      udp: datagrams.address().port,
      pid: bystander.pid ?? 0,
      arrivals: () => arrivals,
      alive: () => bystander.exitCode === null && bystander.signalCode === null,
      dispose: async () => {
        bystander.kill("SIGKILL")
        datagrams.close()
        await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
        for (const each of [folder, seen]) rmSync(each, { recursive: true, force: true })
      }
    }
  }),
  (made) => Effect.promise(made.dispose)
)

type Scene = Effect.Success<typeof scene>

const node = (body: string) => `node -e '${body}'`

/** One kind of attempt; what it prints goes into the table. */
const attempts: ReadonlyArray<readonly [kind: string, script: (scene: Scene) => string]> = [
  [
    "write beside",
    ({ at, seen }) =>
      `for d in ${at("home")} ${at("source")}/src ${at("other-run")} ${seen} / /etc /usr /var/tmp /opt; do echo x > $d/planted-${process.pid}; done`
  ],
  [
    "change",
    ({ at, seen }) =>
      `echo x >> ${seen}/canary; echo x >> ${at("home/.bashrc")}; truncate -s 0 ${seen}/canary; sed -i s/c/d/ ${seen}/canary`
  ],
  [
    "change what git has",
    ({ at }) =>
      `echo x > ${at("source/.git/HEAD")}; echo x > ${at("source/.git/config")}; rm -rf ${at("source/.git/refs")}`
  ],
  [
    "delete",
    ({ at, seen }) =>
      `rm -rf ${seen}/canary ${seen}/directory ${at("home/.ssh")} ${at("other-run")}; unlink ${seen}/link`
  ],
  [
    "rename",
    ({ at, seen }) =>
      `mv ${seen}/canary ${seen}/moved; mv ${at("home/.ssh")} ${at("home/gone")}; mv src ${seen}/src`
  ],
  [
    "modes, times, owners",
    ({ seen }) =>
      `chmod 777 ${seen}/canary; touch -d 2001-01-01 ${seen}/canary; chown 1:1 ${seen}/canary; setfattr -n user.x -v y ${seen}/canary`
  ],
  [
    "through a symbolic link",
    ({ at, seen }) =>
      `ln -s ${seen} away; echo x > away/planted; ln -s ${at("home")} home; echo x > home/planted; ln -sf ${seen}/canary c; echo x > c`
  ],
  [
    "through a hard link",
    ({ at, seen }) => `ln ${seen}/canary twin; echo x >> twin; ln ${at("home/.ssh/id")} key; cat key`
  ],
  [
    "through /proc",
    ({ pid, seen }) =>
      `cat /proc/${pid}/environ; ls /proc/${pid}/root/; echo x > /proc/${pid}/cwd/planted; echo x > /proc/1/root${seen}/planted; echo x > /proc/${pid}/mem`
  ],
  [
    "read secrets",
    ({ at }) =>
      `cat ${at("home/.ssh/id")} ${at("other-run/events.jsonl")} /etc/shadow /root/.bashrc /root/.ssh/*`
  ],
  ["environment", () => `env; cat /proc/*/environ | tr '\\0' '\\n'`],
  [
    "git -C",
    ({ at }) =>
      `git -C ${at("source")} commit --allow-empty -m x; git --git-dir=${at("source/.git")} update-ref refs/heads/evil HEAD; git -C ${at("source")} stash; git -C ${at("source")} checkout -f`
  ],
  [
    "git hooks and settings",
    ({ at }) =>
      `mkdir -p ${at("source/.git/hooks")}; echo 'touch /tmp/ran' > ${at("source/.git/hooks/post-checkout")}; chmod +x ${at("source/.git/hooks/post-checkout")}; git -C ${at("source")} config core.fsmonitor evil`
  ],
  [
    "git filters",
    ({ at }) =>
      `git -C ${at("source")} config filter.x.clean evil; echo '* filter=x' > ${at("source/.git/info/attributes")}; echo '* filter=x' > ${at("source/.gitattributes")}`
  ],
  [
    "corrupt packs",
    ({ at }) =>
      `for f in ${at("source/.git/objects/pack")}/*; do chmod u+w $f; echo x >> $f; done; find ${at("source/.git/objects")} -type f -delete`
  ],
  [
    "poison dependencies",
    ({ at }) =>
      `echo evil > node_modules/index.js; echo evil > ${at("source/node_modules/index.js")}; rm -rf ${at("source/node_modules")}`
  ],
  [
    "TCP",
    ({ tcp }) =>
      node(
        `require("net").connect(${tcp}, "127.0.0.1").on("connect", () => console.log("CONNECTED")).on("error", (e) => console.log(e.code))`
      )
  ],
  [
    "UDP",
    ({ udp }) =>
      node(
        `const s = require("dgram").createSocket("udp4"); s.on("error", (e) => console.log(e.code)); s.send("x", ${udp}, "127.0.0.1", (e) => { console.log(e ? e.code : "SENT"); s.close() })`
      )
  ],
  [
    "UNIX sockets",
    ({ at, seen }) =>
      node(
        `for (const path of ["${at("socket")}", "${seen}/socket"]) require("net").connect({ path }).on("connect", () => console.log("CONNECTED")).on("error", (e) => console.log(e.code))`
      )
  ],
  [
    "abstract socket",
    ({ folder }) =>
      node(
        `require("net").connect({ path: "\\0${folder}" }).on("connect", () => console.log("CONNECTED")).on("error", (e) => console.log(e.code))`
      )
  ],
  [
    "names of the network",
    () =>
      `getent hosts example.invalid; node -e 'require("dns").lookup("example.com", (e, a) => console.log(e ? e.code : a))'`
  ],
  ["signals", ({ pid }) => `kill -9 ${pid}; kill -TERM ${process.pid}; kill -0 ${pid}`],
  ["signals to everything", () => `(trap '' TERM; kill -TERM -1); echo survived`],
  [
    "leave the session",
    () =>
      `setsid sleep 300 & (setsid nohup sleep 300 >/dev/null 2>&1 &) ; exec 1>&- 2>&-; sh -c 'sleep 300 &'`
  ],
  [
    "mount",
    ({ seen }) => `mount -t tmpfs none /usr; mount -o remount,rw /; mount --bind . ${seen}; umount /tmp`
  ],
  ["namespaces", () => `unshare -Ur id; unshare -m true; unshare -n true; nsenter -t 1 -m true`],
  [
    "devices",
    () => `mknod sda b 8 0 && head -c 1 sda; head -c 1 /dev/sda /dev/vda /dev/mem /dev/kmsg; mknod n c 1 3`
  ],
  [
    "kernel settings",
    () =>
      `echo x > /proc/sys/kernel/hostname; echo '|/bin/true' > /proc/sys/kernel/core_pattern; echo b > /proc/sysrq-trigger; echo 1 > /sys/kernel/mm/ksm/run`
  ],
  [
    "privileges",
    () =>
      `sudo -n true; su -c true < /dev/null; cp /bin/sh ./sh; chmod u+s ./sh; ./sh -p -c 'grep CapEff /proc/self/status'; capsh --print | head -1`
  ],
  [
    "look into a process",
    ({ pid }) =>
      `python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.ptrace(16, ${pid}, 0, 0), ctypes.get_errno())'; gdb -p ${pid} -batch`
  ],
  [
    "services of the user",
    () =>
      `crontab -l; echo '* * * * * true' | crontab -; systemctl --user status; docker ps; ls /run/user /run/docker.sock; busctl list`
  ]
]

const firstLines = (output: string): string =>
  output
    .trim()
    .split("\n")
    .at(-1)
    ?.replace(/^.*?: line \d+: /, "")
    .slice(0, 90) ?? ""

const run = (
  scene: Scene,
  backend: SandboxBackend,
  script: string,
  options: {
    ceilings?: { processes: number; memory_bytes: number; disk_bytes: number }
    timeout_ms?: number
  } = {}
) =>
  Effect.gen(function* () {
    const { at } = scene
    const environment = {
      ...process.env,
      HOME: at("home"),
      OPENAI_API_KEY: "SECRET-PROVIDER",
      AWS_SECRET_ACCESS_KEY: "SECRET-CLOUD",
      SSH_AUTH_SOCK: at("socket")
    }
    const { proof, sandbox } = yield* found({
      backend,
      hidden: [at("other-run")],
      cache_root: cache,
      ...(options.ceilings === undefined ? {} : { ceilings: options.ceilings })
    }).pipe(Effect.provideService(HostEnvironment, environment))
    if (sandbox === null) return yield* Effect.die(new Error(proof._tag))
    const layers = sandbox.overlays ? [{ from: at("source/node_modules"), path: "node_modules" }] : []
    return yield* sandbox
      .run(
        commandIn(at("run/clone"), ["sh", "-c", script], {
          place: { root: at("run/clone"), at: at("source"), writable: [at("run/home")], layers },
          env: { HOME: at("run/home"), TMPDIR: at("run/home") },
          timeout_ms: options.timeout_ms ?? 20_000
        })
      )
      .pipe(Effect.provideService(HostEnvironment, environment))
  })

const cache = realpathSync(mkdtempSync(join(tmpdir(), "looplane-escape-cache-")))
afterAll(() => rmSync(cache, { recursive: true, force: true }))

/** What a backend does not keep from happening, and says so: Landlock knows no rule for the attributes of files. */
const unheld: Readonly<Record<string, ReadonlyArray<string>>> = { landlock: ["modes, times, owners"] }

const backends = await Effect.runPromise(
  Effect.forEach(["bubblewrap", "landlock"] as const, (backend) =>
    Effect.map(found({ backend, cache_root: cache }), ({ proof }) => ({
      backend,
      why: proof._tag === "Proved" ? null : proof.reason
    }))
  )
)
for (const { backend, why } of backends)
  if (why !== null) console.log(`${backend} is not proved here: ${why}`)

describe.each(backends)("out of $backend", ({ backend, why }) => {
  it.live.skipIf(why !== null)(
    "no attempt changes, reads, reaches or ends anything of the host's",
    () =>
      Effect.gen(function* () {
        const made = yield* scene
        const { at, seen } = made
        const state = () => ({
          home: snapshotTree(at("home")),
          source: snapshotTree(at("source")),
          other: snapshotTree(at("other-run")),
          seen: snapshotTree(seen)
        })
        const before = state()
        const table: Array<string> = []
        for (const [kind, script] of attempts.filter(([name]) => unheld[backend]?.includes(name) !== true)) {
          const { exit_code, output } = yield* run(made, backend, script(made))
          const after = state()
          for (const place of ["home", "source", "other", "seen"] as const)
            assert.deepStrictEqual(diffTrees(before[place], after[place]), [], `${kind}: ${output}`)
          assert.strictEqual(made.arrivals(), 0, kind)
          assert.isTrue(made.alive(), kind)
          assert.notMatch(output, /SECRET-|CONNECTED/, kind)
          for (const directory of ["/", "/etc", "/usr", "/var/tmp", "/opt", "/tmp"])
            assert.isFalse(existsSync(join(directory, `planted-${process.pid}`)), `${kind}: ${directory}`)
          assert.deepStrictEqual(processesOf("none", [made.folder]), [], kind)
          table.push(`${kind.padEnd(24)} exit ${String(exit_code).padEnd(4)} ${firstLines(output)}`)
        }
        execFileSync("git", ["fsck", "--strict"], {
          cwd: at("source"),
          env: gitEnvironment(made.folder),
          stdio: "pipe"
        })
        console.log(
          `escapes tried against ${backend}: ${table.length}, none got out${unheld[backend] === undefined ? "" : `; not held, and documented: ${unheld[backend].join("; ")}`}\n${table.join("\n")}`
        )
      }).pipe(Effect.scoped),
    240_000
  )

  it.live.skipIf(why !== null)(
    "what would use the machine up is stopped",
    () =>
      Effect.gen(function* () {
        const made = yield* scene
        const ceilings = {
          processes: 60,
          memory_bytes: 400 * 1024 * 1024,
          disk_bytes: 300 * 1024 * 1024
        }
        const stopped = Effect.fnUntraced(function* (script: string) {
          const result = yield* run(made, backend, script, { ceilings, timeout_ms: 60_000 })
          assert.deepStrictEqual(processesOf("none", [made.folder]), [])
          assert.strictEqual(result.exit_code, 137, result.output)
          return result.stopped ?? ""
        })
        assert.match(yield* stopped("bomb() { bomb | bomb & }; bomb; sleep 60"), /more than 60 processes/)
        assert.match(
          yield* stopped(node("const all = []; setInterval(() => all.push(Buffer.alloc(32 << 20, 1)), 5)")),
          /400 MiB of memory/
        )
        assert.match(yield* stopped("while :; do cat /usr/bin/git >> fill; done"), /of the disk free/)
      }).pipe(Effect.scoped),
    240_000
  )
})
