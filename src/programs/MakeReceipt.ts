/**
 * Writing the receipt of a run: after its terminal event, before `result.json`.
 */
import { Effect, Schema } from "effect"
import { Digest as Digests } from "effect/crypto"
import { canonical } from "../domain/Canonical.ts"
import { Digest } from "../domain/Ids.ts"
import { seal, unsealed, type Receipt } from "../domain/Receipt.ts"
import { finalOutcomes, handedOver, makeReceipt, type ReceiptFacts } from "../domain/ReceiptFacts.ts"
import { RunRequest } from "../domain/Request.ts"
import { artifactNames } from "../domain/Result.ts"
import type { Journal, StoreError } from "../services/RunStore.ts"
import { version } from "../version.ts"

const encoder = new TextEncoder()
const encodeRequest = Schema.encodeSync(RunRequest)

/** SHA-256 of some bytes, or of a text's UTF-8 form. */
export const digestOf = (content: string | Uint8Array): Effect.Effect<Digest, never, Digests.Digest> =>
  Digests.Digest.use((digests) =>
    digests.digestHex(Digests.sha256, typeof content === "string" ? encoder.encode(content) : content)
  ).pipe(Effect.map((hex) => Digest.make(hex)))

/** What a receipt is made of, when the digests of files are known already. */
export const bodyOf = Effect.fnUntraced(function* (
  facts: Omit<ReceiptFacts, "patch_digest" | "log_digests">
) {
  const outcomes = finalOutcomes(facts.state)
  return makeReceipt({
    ...facts,
    patch_digest: yield* digestOf(handedOver(facts.state).bytes),
    log_digests: yield* Effect.forEach(outcomes, ({ output }) => digestOf(output))
  })
})

const fileFacts = (content: string | Uint8Array) =>
  Effect.map(digestOf(content), (digest) => ({
    digest,
    bytes: (typeof content === "string" ? encoder.encode(content) : content).length
  }))

/**
 * Writes the receipt of a run whose `run.ended` is behind a barrier, and returns it. `test_log` and `verification` are
 * the files' contents as they were written.
 */
export const writeReceipt = Effect.fn("MakeReceipt.writeReceipt")(function* (options: {
  readonly journal: Journal
  readonly request: RunRequest
  readonly test_log: string | Uint8Array
  readonly verification: string | Uint8Array
}): Effect.fn.Return<Receipt, StoreError, Digests.Digest> {
  const { journal, request } = options
  const body = yield* bodyOf({
    looplane: version,
    request,
    request_digest: yield* digestOf(canonical(encodeRequest(request))),
    state: yield* journal.state,
    verification: yield* fileFacts(options.verification),
    test_log: yield* fileFacts(options.test_log),
    head: yield* journal.head
  })
  if (body === null) return yield* Effect.die(new Error("a receipt was asked for before the run's end"))
  const receipt_digest = yield* digestOf(unsealed(body))
  yield* journal.writeFile(artifactNames.receipt, seal(body, receipt_digest))
  return { ...body, receipt_digest }
})
