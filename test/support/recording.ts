/**
 * Portable recordings that somebody changed on purpose.
 */
import { hash } from "node:crypto"
import { list, record } from "../../src/domain/Json.ts"
import { entryText, headText } from "../../src/domain/RecordingFile.ts"

/** The file with the hashes that what it holds now should have. */
export const resealed = (file: unknown): Readonly<Record<string, unknown>> => {
  const held = record(file)
  const entries = list(held["entries"]).map(record)
  const named = { ...held, events: entries.length }
  const head = hash("sha256", headText(named), "hex")
  let previous = head
  return {
    ...named,
    hash: head,
    entries: entries.map((entry) => {
      previous = hash("sha256", entryText(previous, entry), "hex")
      return Object.assign({}, entry, { hash: previous })
    })
  }
}
