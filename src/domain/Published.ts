/**
 * The JSON Schemas that looplane publishes, made from the definitions that its own code decodes with.
 */
import { Schema } from "effect"
import { JournalLine } from "./JournalCodec.ts"
import { Receipt } from "./Receipt.ts"
import { RunResult } from "./Result.ts"
import { Checkpoint, SessionManifest } from "./Session.ts"
import { RunRequest } from "./Request.ts"

const published = {
  events: [JournalLine, "One line of events.jsonl and of --output jsonl"],
  result: [RunResult, "result.json and the last object of --output json"],
  receipt: [Receipt, "receipt.json: what a patch was made from and what was proved of it"],
  request: [RunRequest, "request.json: what was asked, and of which models"],
  session: [SessionManifest, "session.json: what a run is and how far its journal is synced"],
  checkpoint: [Checkpoint, "checkpoint.json: where a run stands"]
} as const

/** Draft 2020-12, by file name without `.json`. Readers must ignore keys that they do not know. */
export const jsonSchemas = (): Readonly<Record<string, object>> =>
  Object.fromEntries(
    Object.entries(published).map(([name, [schema, title]]) => {
      const { definitions, schema: body } = Schema.toJsonSchemaDocument(schema)
      const shared = Object.keys(definitions).length === 0 ? {} : { $defs: definitions }
      return [name, { $schema: "https://json-schema.org/draft/2020-12/schema", title, ...body, ...shared }]
    })
  )
