/**
 * Bytes of any kind in JSON: text as it is where they are UTF-8, base64 otherwise.
 */
import { Result, Schema } from "effect"
import { Base64 } from "effect/encoding"

export const Octets = Schema.Struct({
  encoding: Schema.Literals(["utf8", "base64"]),
  text: Schema.String
})
export type Octets = typeof Octets.Type

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

export const toOctets = (bytes: Uint8Array): Octets => {
  try {
    return { encoding: "utf8", text: decoder.decode(bytes) }
  } catch {
    return { encoding: "base64", text: Base64.encode(bytes) }
  }
}

/** The bytes; what is no base64 reads as none, since a digest beside it tells more. */
export const fromOctets = ({ encoding, text }: Octets): Uint8Array =>
  encoding === "utf8" ? encoder.encode(text) : Result.getOrElse(Base64.decode(text), () => new Uint8Array())
