/**
 * Line endings between a commit and a checkout: git may have turned every "\n" of a file into "\r\n" when it wrote it
 * (`core.autocrlf`, `eol=crlf`). A patch speaks of the committed bytes, so both must be told apart.
 */
import { sameBytes } from "./Bytes.ts"

/** How the bytes on disk follow from the committed ones. */
export type Form = "raw" | "crlf"

const LF = 0x0a
const CR = 0x0d

interface Endings {
  readonly lf: number
  readonly crlf: number
}

const countEndings = (bytes: Uint8Array): Endings => {
  let lf = 0
  let crlf = 0
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (at > 0 && bytes[at - 1] === CR) crlf++
    else lf++
  }
  return { lf, crlf }
}

/** Every lone "\n" as "\r\n". */
export const toCrlf = (bytes: Uint8Array): Uint8Array => {
  const { lf } = countEndings(bytes)
  if (lf === 0) return bytes
  const out = new Uint8Array(bytes.length + lf)
  let to = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte === LF && (at === 0 || bytes[at - 1] !== CR)) out[to++] = CR
    out[to++] = byte
  }
  return out
}

/** Every "\r\n" as "\n". */
export const toLf = (bytes: Uint8Array): Uint8Array => {
  const { crlf } = countEndings(bytes)
  if (crlf === 0) return bytes
  const out = new Uint8Array(bytes.length - crlf)
  let to = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte === CR && bytes[at + 1] === LF) continue
    out[to++] = byte
  }
  return out
}

export const inForm = (bytes: Uint8Array, form: Form): Uint8Array => (form === "crlf" ? toCrlf(bytes) : bytes)

/** Whether git would call these bytes binary: there is a NUL among the first 8,000. */
export const isBinary = (bytes: Uint8Array): boolean => bytes.subarray(0, 8000).includes(0)

/**
 * The form in which `now` stands on disk, by what stands there: it equals a version in one of the two forms, or most of
 * its lines end in "\r\n" where the committed ones do not. `usual` decides where the bytes say nothing.
 */
export const formOf = (now: Uint8Array, versions: ReadonlyArray<Uint8Array>, usual: Form): Form => {
  const lines = versions.some((version) => version.includes(LF))
  if (!lines || isBinary(now)) return lines ? "raw" : usual
  for (const version of versions) {
    // Without a "\n" both forms are the same bytes, and say nothing.
    if (!version.includes(LF)) continue
    if (sameBytes(now, version)) return "raw"
    if (sameBytes(now, toCrlf(version))) return "crlf"
  }
  const mostly = ({ crlf, lf }: Endings) => crlf > lf
  return mostly(countEndings(now)) && !versions.some((version) => mostly(countEndings(version)))
    ? "crlf"
    : "raw"
}

/** What git's attributes and settings say of a path. */
export interface EndingRules {
  /** The attributes `text` and `eol`: "set", "unset", "unspecified", or a value. */
  readonly text: string
  readonly eol: string
  /** `core.autocrlf` and `core.eol`, null where they are not set. */
  readonly autocrlf: string | null
  readonly core_eol: string | null
}

const isTrue = (value: string | null): boolean => /^(?:true|yes|on|1)$/i.test(value ?? "")

/** The form in which git would check a new file out. */
export const checkoutForm = (rules: EndingRules, bytes: Uint8Array): Form => {
  const { autocrlf, core_eol, eol, text } = rules
  if (text === "unset" || text === "input" || eol === "lf") return "raw"
  const wanted =
    eol === "crlf" || isTrue(autocrlf) || (autocrlf?.toLowerCase() !== "input" && core_eol === "crlf")
  if (!wanted) return "raw"
  const declared = text === "set" || (eol === "crlf" && text !== "auto")
  if (declared) return "crlf"
  if (text !== "auto" && !isTrue(autocrlf)) return "raw"
  return isBinary(bytes) || bytes.includes(CR) ? "raw" : "crlf"
}
