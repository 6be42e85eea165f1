/**
 * The files that a receipt speaks of, read for its check.
 */
import { Effect, FileSystem, Option, Path, Result } from "effect"
import { canonical } from "../domain/Canonical.ts"
import { wordsOf } from "../domain/Errno.ts"
import { failed, ok } from "../domain/Finding.ts"
import { parse } from "../domain/Json.ts"
import { openReceipt, type ReceiptBody } from "../domain/Receipt.ts"
import { artifactNames } from "../domain/Result.ts"
import { digestOf } from "./MakeReceipt.ts"

/** Of one file of a bundle, in bytes: none that looplane writes comes near it. */
const maxFileBytes = 256 * 1024 * 1024

/** The bytes of a regular file, or why there are none. Opening anything else could wait for ever. */
export const readRegular = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.gen(function* () {
    const info = yield* fs.stat(file)
    if (info.type !== "File") return Result.fail("it is no regular file")
    if (Number(info.size) > maxFileBytes)
      return Result.fail(`it has ${info.size} bytes, more than a run writes`)
    return Result.succeed(yield* fs.readFile(file))
  }).pipe(
    Effect.catchTag("PlatformError", (error) =>
      Effect.succeed(
        Result.fail(
          error.reason._tag === "NotFound" ? "it is missing" : `it cannot be read: ${wordsOf(error)}`
        )
      )
    )
  )
})

/** The receipt in a file, as far as its own bytes can say. */
export const openFile = Effect.fnUntraced(function* (file: string) {
  const subject = artifactNames.receipt
  const bytes = yield* readRegular(file)
  if (Result.isFailure(bytes)) {
    const why =
      bytes.failure === "it is missing"
        ? "there is none: the run has not ended (looplane resume goes on with it), or its version made none"
        : bytes.failure
    return { receipt: null, finding: failed(subject, why) }
  }
  const opened = openReceipt(bytes.success)
  if (Result.isFailure(opened)) return { receipt: null, finding: failed(subject, opened.failure) }
  const { receipt, unsealed } = opened.success
  const digest = yield* digestOf(unsealed)
  if (digest !== receipt.receipt_digest)
    return {
      receipt,
      finding: failed(subject, `its content has the digest ${digest}, and it says ${receipt.receipt_digest}`)
    }
  const { status, terminal_reason } = receipt.verdict
  return {
    receipt,
    finding: ok(subject, `sha256 ${digest}: run ${receipt.run_id} ${status}, ${terminal_reason}`)
  }
})

/** A file against what the receipt says of it; its bytes when they are the same. */
export const compareFile = Effect.fnUntraced(function* (file: string, said: ReceiptBody["test_log"]) {
  const bytes = yield* readRegular(file)
  if (Result.isFailure(bytes)) return { bytes: null, finding: failed(said.file, bytes.failure) }
  const digest = yield* digestOf(bytes.success)
  return digest === said.digest && bytes.success.length === said.bytes
    ? { bytes: bytes.success, finding: ok(said.file, `sha256 ${digest}`) }
    : {
        bytes: null,
        finding: failed(
          said.file,
          `${bytes.success.length} bytes with sha256 ${digest}, and the receipt says ${said.bytes} with ${said.digest}`
        )
      }
})

/** The digest of a run's request as a receipt has it, of its canonical form; or why there is none. */
export const requestDigest = Effect.fnUntraced(function* (directory: string) {
  const path = yield* Path.Path
  const bytes = yield* readRegular(path.join(directory, artifactNames.request))
  return Result.isFailure(bytes)
    ? Result.fail(bytes.failure)
    : Result.succeed(yield* digestOf(canonical(parse(new TextDecoder().decode(bytes.success)))))
})

/** Behind the last newline of a journal nothing may follow: a reader drops what is no whole line. */
export const endsWhole = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.scoped(
    Effect.gen(function* () {
      // Opening a FIFO would wait for its writer.
      if ((yield* fs.stat(file)).type !== "File") return false
      const handle = yield* fs.open(file, { flag: "r" })
      const size = Number((yield* handle.stat).size)
      yield* handle.seek(BigInt(size - 1), "start")
      const tail = yield* handle.readAlloc(1)
      return Option.isSome(tail) && tail.value[0] === 0x0a
    })
  ).pipe(Effect.orElseSucceed(() => false))
})
