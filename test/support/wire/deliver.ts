import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { setImmediate as immediate } from "node:timers/promises"
import type { Chunks, Delivery, Ending, Rendered } from "./types.ts"

const cutAt = (body: Uint8Array, ends: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const parts: Array<Uint8Array> = []
  let from = 0
  for (const end of [...ends, body.length]) {
    if (end <= from) continue
    parts.push(body.subarray(from, end))
    from = end
  }
  return parts
}

const positions = (body: Uint8Array, cutAfter: (byte: number, next: number | undefined) => boolean) =>
  Array.from(body.entries())
    .filter(([at, byte]) => cutAfter(byte, body[at + 1]))
    .map(([at]) => at + 1)

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80

/** The writes that deliver `chunks`, cut anew when the delivery says how. */
export const cut = (
  chunks: ReadonlyArray<Uint8Array>,
  rule: Chunks | undefined
): ReadonlyArray<Uint8Array> => {
  if (rule === undefined) return chunks.filter((chunk) => chunk.length > 0)
  const body = new Uint8Array(Buffer.concat(chunks))
  switch (rule) {
    case "whole":
      return cutAt(body, [])
    case "1 byte each":
      return cutAt(
        body,
        positions(body, () => true)
      )
    case "cut after every \\r":
      return cutAt(
        body,
        positions(body, (byte) => byte === 0x0d)
      )
    case "split every character":
      return cutAt(
        body,
        positions(body, (byte, next) => byte >= 0xc0 && isContinuation(next))
      )
    default: {
      let end = 0
      return cutAt(
        body,
        rule.map((length) => Math.min(body.length, (end += length)))
      )
    }
  }
}

const limitOf = (ending: Ending): number => {
  switch (ending._tag) {
    case "Complete":
    case "HangUp":
      return Infinity
    case "Cut":
    case "End":
      return ending.after
    case "Stall":
      return ending.after === "before headers" ? 0 : ending.after
  }
}

/** Kills the connection after everything written so far, headers included, has been handed to the kernel. */
const kill = async (socket: Socket | null, reset: boolean) => {
  if (socket === null || socket.destroyed) return
  await new Promise<void>((resolve) => socket.write("", () => resolve()))
  if (reset) socket.resetAndDestroy()
  else socket.destroy()
}

/**
 * Two rounds of the event loop. A client in this process has read the chunk by then and sees the next one apart from
 * it; a client in another process may find both at once, and only a gate keeps them apart for certain.
 */
const turns = async () => {
  await immediate()
  await immediate()
}

/**
 * Writes one answer. Every chunk is handed to the kernel before the next one is looked at. `gone` resolves when the
 * client has gone away; nothing is written after it. `cutting` is called before this side kills the connection.
 */
export const deliver = async (
  response: ServerResponse,
  rendered: Rendered,
  delivery: Delivery,
  gone: Promise<void>,
  cutting: () => void
): Promise<void> => {
  const { ending, gates } = delivery
  let left = false
  const leave = async () => {
    await gone
    left = true
  }
  const client = leave()
  const write = (piece: Uint8Array) =>
    Promise.race([client, new Promise<void>((resolve) => response.write(piece, () => resolve()))])
  const stalled = () =>
    ending._tag === "Stall" && ending.release !== undefined
      ? Promise.race([client, ending.release.pass()])
      : client

  if (ending._tag === "HangUp") {
    cutting()
    return kill(response.socket, false)
  }
  if (ending._tag === "Stall" && ending.after === "before headers") await stalled()
  if (left) return
  response.writeHead(rendered.status, { ...rendered.headers })
  response.flushHeaders()

  let room = limitOf(ending)
  /** Does what the ending says at its byte; true when the answer is over. */
  const over = async (): Promise<boolean> => {
    switch (ending._tag) {
      case "Cut":
        cutting()
        await kill(response.socket, ending.reset)
        return true
      case "End":
        response.end()
        return true
      default:
        await stalled()
        room = Infinity
        return left
    }
  }
  const chunks = cut(rendered.chunks, delivery.chunks)
  for (const [at, chunk] of chunks.entries()) {
    if (at > 0) await turns()
    const held = gates.get(at)
    if (held !== undefined) await Promise.race([client, held.pass()])
    let rest = chunk
    while (rest.length > 0) {
      if (left) return
      const piece = rest.subarray(0, Math.min(rest.length, room))
      if (room === Infinity && at === chunks.length - 1) {
        // The last bytes and the end of the body go together, as from a real service: a client that stops reading at
        // its terminal event would otherwise tear the connection down between the two.
        response.end(piece)
        return
      }
      if (piece.length > 0) await write(piece)
      room -= piece.length
      rest = rest.subarray(piece.length)
      if (rest.length > 0 && (await over())) return
    }
  }
  if (room !== Infinity && (await over())) return
  if (!left) response.end()
}
