/**
 * The proof that a sandbox holds: one child that tries to get out of it by every way that counts, through the very code
 * that runs checks, and a judgement from the host's side. A control says that it ran at all: "everything was denied" may
 * also mean that nothing happened.
 */
import { Effect, FileSystem, Path, Schema, type Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import { createServer, type ListenOptions } from "node:net"
import type { Sandbox } from "../../services/Sandbox.ts"
import { errnoOf } from "../fs/Files.ts"
import { removeTree } from "../workspace/RemoveTree.ts"

/** What the child says of itself. Nothing of it is believed to the sandbox's credit that the host can see by itself. */
const Told = Schema.fromJsonString(
  Schema.Struct({
    /** Codes of refusals, by attempt; "done" for what worked. */
    tried: Schema.Record(Schema.String, Schema.String),
    /** What it could read that it should not. */
    read: Schema.Array(Schema.String),
    no_new_privileges: Schema.Boolean,
    filtered: Schema.Boolean,
    capabilities: Schema.String,
    network: Schema.String
  })
)

interface Targets {
  readonly nonce: string
  readonly place: string
  readonly secrets: ReadonlyArray<string>
  readonly canaries: ReadonlyArray<string>
  readonly outside: ReadonlyArray<string>
  readonly dependency: string
  readonly port: number
  readonly socket: string
  readonly pid: number
}

/** Runs inside, as `node -e`: only what a Node of any version has. */
const attempts = (targets: Targets): string => `
const t = ${JSON.stringify(targets)}, fs = require("fs"), net = require("net"), tried = {}, read = []
const attempt = (name, act) => { try { act(); tried[name] = "done" } catch (e) { tried[name] = e.code || String(e) } }
fs.writeFileSync(t.place + "/control", t.nonce)
fs.writeFileSync(t.dependency + "/written", t.nonce)
for (const at of t.outside) attempt("write " + at, () => fs.writeFileSync(at, t.nonce))
for (const at of t.canaries) attempt("change " + at, () => fs.appendFileSync(at, "!"))
for (const at of t.canaries) attempt("remove " + at, () => fs.unlinkSync(at))
for (const at of t.canaries) attempt("link " + at, () => fs.linkSync(at, t.place + "/link"))
for (const at of t.secrets) attempt("read " + at, () => read.push(fs.readFileSync(at, "utf8")))
attempt("signal", () => process.kill(t.pid, 0))
attempt("settings", () => fs.closeSync(fs.openSync("/proc/sys/kernel/core_pattern", "r+")))
attempt("look", () => read.push(fs.readFileSync("/proc/" + t.pid + "/environ", "utf8")))
const status = fs.readFileSync("/proc/self/status", "utf8")
const line = (name) => (new RegExp("^" + name + ":\\\\s*(\\\\S+)", "m").exec(status) || [])[1]
const connect = (name, to) => new Promise((end) => {
  let s
  try { s = net.connect(to) } catch (e) { tried[name] = e.code || String(e); return end() }
  s.on("connect", () => { tried[name] = "done"; s.destroy(); end() })
  s.on("error", (e) => { tried[name] = e.code || String(e); end() })
  setTimeout(() => { s.destroy(); end() }, 2000).unref()
})
Promise.all([
  connect("TCP", { host: "127.0.0.1", port: t.port }),
  connect("a UNIX socket", { path: t.socket }),
  connect("an abstract socket", { path: "\\0" + t.nonce })
]).then(() => console.log(t.nonce + JSON.stringify({
  tried, read, no_new_privileges: line("NoNewPrivs") === "1", filtered: line("Seccomp") === "2",
  capabilities: line("CapEff") || "unknown", network: fs.readlinkSync("/proc/self/ns/net")
})))`

/** A listener of ours, and how many came. Closed with the scope. */
const listen = (at: ListenOptions, onArrival: () => void): Effect.Effect<number, string, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>, string>((resume) => {
      const server = createServer((socket) => {
        onArrival()
        socket.destroy()
      })
      server.once("error", (error) => resume(Effect.fail(error.message)))
      server.listen(at, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  ).pipe(
    Effect.map((server) => {
      const address = server.address()
      return typeof address === "object" && address !== null ? address.port : 0
    })
  )

/** Long enough for a Node on a machine that is busy. */
const timeoutMs = 30_000

export interface ProofOptions {
  /** Where the proof may make its own directory; it is the user's, and nobody else writes there. */
  readonly scratch: string
  /** Directories that are not the command's to write: the host looks whether a file came to be in them. */
  readonly forbidden: ReadonlyArray<string>
}

/** Every way in which a sandbox was seen not to hold; none when it does. */
export const prove = Effect.fn("Sandbox.prove")(
  function* (sandbox: Sandbox["Service"], options: ProofOptions) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const random = yield* SecureRandom.SecureRandom
    const nonce = `looplane-${yield* random.uuidV4()}`
    const base = yield* Effect.acquireRelease(
      fs.makeTempDirectory({ directory: options.scratch, prefix: "proof-" }),
      removeTree
    )
    const at = (...names: ReadonlyArray<string>) => path.join(base, ...names)
    for (const name of ["place", "source", "home", "outside", "installed"])
      yield* fs.makeDirectory(at(name), { mode: 0o700 })
    const secret = `${nonce}-secret`
    const canary = `${nonce}-canary`
    yield* fs.writeFileString(at("outside", "secret"), secret)
    yield* fs.writeFileString(at("source", "secret"), secret)
    for (const where of ["outside", "source", "installed"])
      yield* fs.writeFileString(at(where, "canary"), canary)

    let arrivals = 0
    const arrive = () => void (arrivals += 1)
    const socket = at("outside", "socket")
    const port = yield* listen({ host: "127.0.0.1", port: 0 }, arrive)
    yield* listen({ path: socket }, arrive)
    yield* listen({ path: `\0${nonce}` }, arrive)

    const outside = [...options.forbidden, base, at("outside"), at("source")].map((directory) =>
      path.join(directory, nonce)
    )
    const shown = sandbox.overlays ? at("source") : at("place")
    const targets: Targets = {
      nonce,
      place: shown,
      secrets: [at("outside", "secret"), at("source", "secret")],
      canaries: [at("outside", "canary"), at("installed", "canary")],
      outside: outside.filter((file) => !sandbox.overlays || path.dirname(file) !== at("source")),
      dependency: sandbox.overlays ? path.join(shown, "dependency") : at("home"),
      port,
      socket,
      pid: process.pid
    }
    const result = yield* sandbox.run({
      argv: [process.execPath, "-e", attempts(targets)],
      place: {
        root: at("place"),
        at: at("source"),
        writable: [at("home")],
        layers: sandbox.overlays ? [{ from: at("installed"), path: "dependency" }] : []
      },
      directory: "",
      env: { HOME: at("home") },
      network: "none",
      timeout_ms: timeoutMs,
      max_output_bytes: 64 * 1024
    })

    const textAt = (file: string) => fs.readFileString(file).pipe(Effect.orElseSucceed(() => null))
    const said = result.output.indexOf(nonce)
    const told = yield* Schema.decodeUnknownEffect(Told)(
      said < 0 ? "" : (result.output.slice(said + nonce.length).split("\n")[0] ?? "")
    ).pipe(Effect.option)
    if (result.exit_code !== 0 || told._tag === "None") {
      const last = result.output.trim().split("\n").at(-1) ?? ""
      return [
        `the trial did not run (exit ${result.exit_code}${last === "" ? "" : `: ${last.slice(0, 200)}`})`
      ]
    }
    const failures: Array<string> = []
    const demand = (holds: boolean, failure: string) => {
      if (!holds) failures.push(failure)
    }
    const { capabilities, filtered, network, no_new_privileges, read, tried } = told.value
    demand((yield* textAt(at("place", "control"))) === nonce, "what it writes in its place is not there")
    for (const file of outside) {
      // Where the user may not even look, as in root's home, a command of theirs cannot have written.
      const came = yield* fs
        .exists(file)
        .pipe(Effect.catchTag("PlatformError", (error) => Effect.succeed(errnoOf(error) !== "EACCES")))
      if (came) yield* fs.remove(file, { force: true }).pipe(Effect.ignore)
      demand(!came, `it can write ${path.dirname(file)}`)
    }
    for (const where of ["outside", "source", "installed"])
      demand((yield* textAt(at(where, "canary"))) === canary, "it can change files that are not its own")
    demand(
      (yield* fs.readDirectory(at("installed"))).length === 1,
      "it can write where dependencies are installed"
    )
    demand(!read.some((text) => text.includes(secret)), "it can read what is hidden")
    demand(
      read.every((text) => text.includes(secret)),
      "it can look into other processes"
    )
    demand(tried["signal"] !== "done", "it can signal other processes")
    demand(tried["settings"] !== "done", "it can change the kernel's settings")
    demand(arrivals === 0, "it can reach listeners outside")
    for (const name of ["TCP", "a UNIX socket", "an abstract socket"])
      demand(tried[name] !== "done", `it can connect to ${name}`)
    demand(no_new_privileges, "it may gain privileges")
    demand(filtered, "no filter is on its system calls")
    demand(/^0+$/.test(capabilities), `it has capabilities (${capabilities})`)
    // Landlock has no network but the host's, of which no socket is left.
    if (sandbox.kind !== "landlock")
      demand(network !== (yield* fs.readLink("/proc/self/ns/net")), "it is in the network of the host")
    return [...new Set(failures)]
  },
  Effect.scoped,
  // A sandbox that could not even be asked is not proved.
  Effect.catch((error) =>
    Effect.succeed([typeof error === "string" ? `no listener for the trial: ${error}` : error.message])
  )
)
