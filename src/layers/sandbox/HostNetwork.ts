/**
 * What a command needs to see of this machine when it may use its network: how names are resolved, and which authorities
 * are trusted. Those files may lie where nothing is shown.
 */
import { Effect, FileSystem, Option } from "effect"
import type { Mount } from "../../domain/SandboxView.ts"
import { HostEnvironment } from "./Environment.ts"

/** Variables that name certificates; none holds a secret. */
const authorities = [
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "NODE_EXTRA_CA_CERTS",
  "REQUESTS_CA_BUNDLE",
  "SSL_CERT_DIR",
  "SSL_CERT_FILE"
]

export const hostNetwork = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const host = yield* HostEnvironment
  const named = authorities.flatMap((name) => {
    const file = host[name]
    return file === undefined || !file.startsWith("/") ? [] : [[name, file] as const]
  })
  const files = yield* Effect.forEach(["/etc/resolv.conf", ...named.map(([, file]) => file)], (file) =>
    Effect.option(fs.realPath(file))
  )
  const mounts = files.flatMap(Option.toArray).map((at): Mount => ({ _tag: "ReadOnly", from: at, at }))
  const env: Readonly<Record<string, string>> = Object.fromEntries(named)
  return { mounts, env }
})
