/**
 * One request on the wire: what leaves and what comes is kept, and what was kept can come in place of an answer.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import { hash } from "node:crypto"
import { Clock, Data, Effect } from "effect"
import { Digest } from "../../domain/Ids.ts"
import { withoutKey } from "../../domain/model/Redact.ts"
import { fromOctets, toOctets } from "../../domain/Octets.ts"
import type { Exchange } from "../../domain/Wire.ts"
import { Wire } from "../../services/Wire.ts"
import type { Fault } from "./Fault.ts"
import { holdsKey, unkeyed } from "./Unkeyed.ts"

/** As much of a `Response` as is read of one. */
export type Came = Pick<Response, "status" | "headers" | "body">

/** A recorded failure, as its playback throws it. */
class Broken extends Data.TaggedError("Broken")<{ readonly code: string; readonly message: string }> {}

export const digestOf = (body: string): Digest => Digest.make(hash("sha256", body, "hex"))

/** The bytes in pieces of these lengths; what is left over is the last one. */
function* cut(bytes: Uint8Array, lengths: ReadonlyArray<number>) {
  let from = 0
  for (const length of [...lengths, bytes.length]) {
    const to = Math.min(bytes.length, from + Math.max(0, length))
    if (to > from) yield bytes.slice(from, to)
    from = to
  }
}

/** Waits until the request is given up. */
const quiet = (signal: AbortSignal | null): Promise<never> =>
  new Promise((_, reject) => {
    if (signal?.aborted === true) reject(signal.reason)
    else signal?.addEventListener("abort", () => reject(signal.reason), { once: true })
  })

const bodyOf = (recorded: Exchange, signal: AbortSignal | null): ReadableStream<Uint8Array<ArrayBuffer>> => {
  const pieces = cut(fromOctets(recorded.body), recorded.pieces)
  return new ReadableStream(
    {
      pull: async (controller) => {
        const next = pieces.next()
        if (next.done !== true) controller.enqueue(next.value)
        else if (recorded.fault === null) controller.close()
        else if (recorded.fault.kind === "failed") controller.error(new Broken(recorded.fault))
        else await quiet(signal)
      }
    },
    { highWaterMark: 0 }
  )
}

/** What a recorded request comes to, without a network. Silence lasts until the request is given up. */
const play = async (recorded: Exchange, signal: AbortSignal | null): Promise<Came> => {
  const { fault, headers, status } = recorded
  if (status !== null) {
    const body = status === 204 || status === 205 ? null : bodyOf(recorded, signal)
    return status >= 200 && status <= 299
      ? new Response(body, { status, headers })
      : { status, headers: new Headers(headers), body }
  }
  if (fault?.kind === "silent") return quiet(signal)
  throw new Broken(fault ?? { code: "", message: "the recording holds no answer" })
}

/** Cookies identify a client and are never sent back. */
const dropped: ReadonlySet<string> = new Set(["cookie", "set-cookie"])

const headersOf = (headers: Headers, secret: string): Record<string, string> =>
  Object.fromEntries(
    Array.from(headers.entries())
      .filter(([name]) => !dropped.has(name))
      .map(([name, value]) => [name, withoutKey(value, secret)])
  )

export interface Line {
  /** Whether the answer comes from a recording, which holds no more than was read. */
  readonly played: boolean
  /** Sends a body, or plays what came for it. Rejects when no answer came. */
  readonly ask: (body: string, signal: AbortSignal | null, network: () => Promise<Response>) => Promise<Came>
  /** Takes a piece of the body as it is read. It is not copied, and must not change. */
  readonly read: (piece: Uint8Array) => void
  /** When the headers, or the failure, came; now, when neither has. */
  readonly answeredAtMs: () => number
  /**
   * Keeps what was read, when nothing more will be. `heard` is what the answer was understood as so far. A request that
   * never left is not kept.
   */
  readonly keep: (fault: Fault | null, heard?: unknown) => Effect.Effect<void>
}

/** Opens the line for one request of whoever runs the effect. */
export const openLine = Effect.fnUntraced(function* (secret: string): Effect.fn.Return<Line> {
  const wire = yield* Wire
  const clock = yield* Clock.Clock
  const recorded = wire.recorded === null ? null : yield* wire.recorded
  let sent: Digest | null = null
  let came: Came | null = null
  let at: number | null = null
  let pieces: Array<Uint8Array> = []

  const now = () => recorded?.answered_at_ms ?? clock.currentTimeMillisUnsafe()
  const kept = (digest: Digest, fault: Fault | null, heard: unknown): Exchange => {
    const read = unkeyed(pieces, secret, { heard: holdsKey(heard, secret), open: fault !== null })
    pieces = []
    return {
      sent: digest,
      answered_at_ms: at ?? now(),
      status: came?.status ?? null,
      headers: came === null ? {} : headersOf(came.headers, secret),
      body: toOctets(read.body),
      pieces: read.pieces,
      fault: fault === null ? null : { ...fault, message: withoutKey(fault.message, secret) }
    }
  }
  return {
    played: recorded !== null,
    ask: async (body, signal, network) => {
      sent = digestOf(body)
      try {
        // A connection outlives its first request, and must not remember whose it was.
        came = await (recorded === null ? lines.run(null, network) : play(recorded, signal))
        return came
      } finally {
        at = now()
      }
    },
    read: (piece) => void pieces.push(piece),
    answeredAtMs: () => at ?? now(),
    keep: (fault, heard = null) =>
      Effect.suspend(() => (sent === null ? Effect.void : wire.keep(kept(sent, fault, heard))))
  }
})

const lines = new AsyncLocalStorage<Line | null>()

/** Runs an SDK's call so that whatever it fetches goes over this line. */
export const onLine = <A>(line: Line, call: () => Promise<A>): Promise<A> => lines.run(line, call)

/** The line of the call that is running. */
export const currentLine = (): Line | null => lines.getStore() ?? null
