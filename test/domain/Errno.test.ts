import { assert, describe, it } from "@effect/vitest"
import { Effect, PlatformError } from "effect"
import { wordsOf } from "../../src/domain/Errno.ts"
import { failAt } from "../../src/layers/journal/Failure.ts"
import { explained } from "../../src/layers/usertree/Fault.ts"
import { failed, onDisk, thrown } from "../../src/layers/workspace/Failure.ts"

/** As the platform reports a failed call on an open file. */
const errorOf = (code: string) =>
  PlatformError.systemError({
    _tag: "Unknown",
    module: "FileSystem",
    method: "writeAll",
    pathOrDescriptor: 24,
    cause: Object.assign(new Error(`${code}: x, write`), { code })
  })

const codes = [
  ...["EACCES", "EBUSY", "EDQUOT", "EEXIST", "EFBIG", "EIO", "EISDIR", "ELOOP", "EMFILE", "ENAMETOOLONG"],
  ...["ENFILE", "ENOENT", "ENOSPC", "ENOTDIR", "ENOTEMPTY", "EPERM", "EROFS", "ETXTBSY", "EXDEV"]
]

describe("a failed call", () => {
  it.effect("is told in the same words everywhere, never in those of the platform", () =>
    Effect.gen(function* () {
      for (const code of [...codes, "EWEIRD"]) {
        const error = errorOf(code)
        const words = wordsOf(error)
        assert.notMatch(words, /FileSystem|Unknown|24/, code)
        if (code !== "EWEIRD") assert.notInclude(words, code)
        for (const message of [
          onDisk("a.txt")(error).message,
          failed("a.txt cannot be kept", error).message,
          thrown("a.txt cannot be kept")(error).message,
          thrown("a.txt cannot be kept")(error.reason.cause).message,
          explained("failed", "a.txt")(error).message,
          (yield* Effect.flip(Effect.fail(error).pipe(failAt("/a.txt")))).message
        ]) {
          assert.include(message, words, code)
          assert.include(message, "a.txt", code)
        }
      }
    })
  )
})
