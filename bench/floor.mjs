import { hash } from "node:crypto"
import fs from "node:fs"
const fd = fs.openSync(process.argv[2], "r")
let buffer = Buffer.alloc(256 * 1024)
const decoder = new TextDecoder("utf-8", { fatal: true })
let filled = 0,
  lines = 0
for (;;) {
  if (filled === buffer.length) {
    const l = Buffer.alloc(2 * filled)
    buffer.copy(l)
    buffer = l
  }
  const count = fs.readSync(fd, buffer, filled, buffer.length - filled, null)
  if (count === 0) break
  filled += count
  let from = 0
  const bytes = buffer.subarray(0, filled)
  for (let to = bytes.indexOf(10); to !== -1; to = bytes.indexOf(10, from)) {
    JSON.parse(decoder.decode(bytes.subarray(from, to)))
    hash("sha256", bytes.subarray(from, to + 1), "hex")
    lines++
    from = to + 1
  }
  buffer.copyWithin(0, from, filled)
  filled -= from
}
