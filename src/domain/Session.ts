/**
 * The manifest and the checkpoint of a bundle: identity and position, never content.
 */
import { Schema } from "effect"
import { CommitId, Digest, RunId, TreeId } from "./Ids.ts"
import { Usage } from "./Usage.ts"

/** `session.json`: durable before the first event; its head never leads the journal. */
export const SessionManifest = Schema.Struct({
  schema_version: Schema.Literal(1),
  run_id: RunId,
  provider: Schema.String,
  model: Schema.String,
  prompt_version: Schema.String,
  base_sha: CommitId,
  created_at: Schema.String,
  /** Changes with every writer: a writer whose token is not this one has lost the run. */
  writer_token: Schema.String,
  /** The last synced line: its sequence (-1 when there is none) and the hash of its bytes. */
  head: Schema.Struct({ sequence: Schema.Int, hash: Digest })
})
export type SessionManifest = typeof SessionManifest.Type

/** `checkpoint.json`: where the run stands, for tools that do not read the journal. */
export const Checkpoint = Schema.Struct({
  sequence: Schema.Int,
  head: Digest,
  step: Schema.Int,
  tree: Schema.NullOr(TreeId),
  usage: Usage
})
export type Checkpoint = typeof Checkpoint.Type
