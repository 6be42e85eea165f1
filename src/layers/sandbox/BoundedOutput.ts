/**
 * The output of a command, bounded in bytes: its head and its tail, cut between characters.
 */
export interface BoundedOutput {
  readonly push: (chunk: Uint8Array) => void
  readonly total: () => number
  /** The text, at most the bound in UTF-8 bytes. */
  readonly render: () => string
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Where the last character that is whole ends. */
const wholeEnd = (bytes: Buffer): number => {
  let lead = bytes.length - 1
  while (lead >= 0 && bytes.length - lead < 4 && isContinuation(bytes[lead])) lead -= 1
  const byte = bytes[lead] ?? 0
  const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
  return lead + length > bytes.length ? lead : bytes.length
}

/** Where the first character that is whole starts. */
const wholeStart = (bytes: Buffer): number => {
  let at = 0
  while (at < 3 && isContinuation(bytes[at])) at += 1
  return at
}

const marker = (omitted: number): string => `\n[... ${omitted} bytes omitted ...]\n`

export const makeBoundedOutput = (max: number): BoundedOutput => {
  const headLimit = Math.floor(max / 2)
  const tailLimit = max - headLimit
  const head: Array<Uint8Array> = []
  let headSize = 0
  let tail: Array<Uint8Array> = []
  let tailSize = 0
  let total = 0

  const push = (chunk: Uint8Array): void => {
    total += chunk.length
    const room = headLimit - headSize
    if (room > 0) {
      head.push(chunk.subarray(0, room))
      headSize += Math.min(room, chunk.length)
    }
    if (chunk.length <= room) return
    tail.push(chunk.subarray(Math.max(0, room)))
    tailSize += chunk.length - Math.max(0, room)
    // Whole chunks only: what is left over is cut once, at the end.
    let drop = 0
    while (tailSize - (tail[drop]?.length ?? tailSize) >= tailLimit) {
      tailSize -= tail[drop]?.length ?? 0
      drop += 1
    }
    if (drop > 0) tail = tail.slice(drop)
  }

  const render = (): string => {
    const first = Buffer.concat(head)
    const last = Buffer.concat(tail)
    if (total <= max) {
      const text = new TextDecoder().decode(Buffer.concat([first, last]))
      return Buffer.byteLength(text) <= max ? text : rebound(text, max)
    }
    const room = Math.max(0, tailLimit - marker(total).length)
    const end = last.subarray(last.length - Math.min(room, last.length))
    const kept = [first.subarray(0, wholeEnd(first)), end.subarray(wholeStart(end))]
    const omitted = total - kept.reduce((sum, part) => sum + part.length, 0)
    const [before, after] = kept.map((part) => new TextDecoder().decode(part))
    const text = `${before}${marker(omitted)}${after}`
    return Buffer.byteLength(text) <= max || max < 2 * marker(total).length ? text : rebound(text, max)
  }

  return { push, total: () => total, render }
}

/** Bytes that are no text grow when they are replaced: the text is bounded once more. */
const rebound = (text: string, max: number): string => {
  const again = makeBoundedOutput(max)
  again.push(Buffer.from(text))
  return again.render()
}
