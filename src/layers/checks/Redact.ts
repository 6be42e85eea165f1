/**
 * Secrets in text that is kept or shown. It errs towards hiding too much.
 */
const hidden = "[redacted]"

const shapes: ReadonlyArray<RegExp> = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\bsk-[A-Za-z0-9_-]{16,}/g,
  /\bgh[pousr]_[A-Za-z0-9]{20,}/g,
  /\bgithub_pat_[A-Za-z0-9_]{20,}/g,
  /\bglpat-[A-Za-z0-9_-]{16,}/g,
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g,
  /\bAIza[0-9A-Za-z_-]{35}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /\bnpm_[A-Za-z0-9]{30,}/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g
]

/** NAME=value and NAME: value, where the name says that the value is a secret. */
const named =
  /\b([A-Za-z0-9_-]{0,60}(?:api[_-]?key|access[_-]?key|token|secret|passw(?:or)?d|credential)s?)(["']?\s*[=:]\s*["']?)([^\s"',;]{6,})/gi

const bearer = /\b(authorization:\s*)((?:bearer|basic|token)\s+)?[^\s"']{6,}/gi

/** The text with everything that looks like a secret replaced. */
export const redact = (text: string): string =>
  shapes
    .reduce((done, shape) => done.replace(shape, hidden), text)
    .replace(bearer, `$1$2${hidden}`)
    .replace(named, (whole: string, name: string, between: string, value: string) =>
      // A number, or a call, is code or a count and no secret.
      /^\d+$/.test(value) || /[()]/.test(value) ? whole : `${name}${between}${hidden}`
    )
