/**
 * The floor of reading a journal: bare Node that reads a file in pieces, parses each of its lines and hashes it.
 * A script of its own, since a process that strips types first starts later.
 */
export const floorScript = `
const { hash } = require("node:crypto")
const fs = require("node:fs")
const file = fs.openSync(process.argv[1], "r")
const decoder = new TextDecoder("utf-8", { fatal: true })
let buffer = Buffer.alloc(256 * 1024)
let filled = 0
for (;;) {
  if (filled === buffer.length) buffer = Buffer.concat([buffer, Buffer.alloc(filled)])
  const count = fs.readSync(file, buffer, filled, buffer.length - filled, null)
  if (count === 0) break
  filled += count
  let from = 0
  const bytes = buffer.subarray(0, filled)
  for (let to = bytes.indexOf(10); to !== -1; to = bytes.indexOf(10, from)) {
    JSON.parse(decoder.decode(bytes.subarray(from, to)))
    hash("sha256", bytes.subarray(from, to + 1), "hex")
    from = to + 1
  }
  buffer.copyWithin(0, from, filled)
  filled -= from
}
`
