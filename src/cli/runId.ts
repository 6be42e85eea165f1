/**
 * Names for new runs.
 */
import { Effect, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { RunId } from "../domain/Ids.ts"

/** Sortable by time, unique by chance: the store refuses a second run of the same name. */
export const newRunId = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  return yield* Schema.decodeEffect(RunId)(yield* random.uuidV7()).pipe(Effect.orDie)
})
