/**
 * What a refusal or failure of a provider means: status, headers and body become one `ModelError`.
 */
import { DateTime, Option } from "effect"
import { modelError, type ModelError, type ModelErrorKind } from "../ModelError.ts"
import * as P from "./ErrorPatterns.ts"
import { list, parse, record, text, type JsonRecord } from "../Json.ts"
import { htmlTitle, looksLikeHtml, oneLine, redact } from "./Redact.ts"
import { announcedDelay, bodyHint, limitReset, retryAfter, type Headers, type Hint } from "./RetryHints.ts"

export interface Failure {
  /** Null when the error came inside a stream. */
  readonly status: number | null
  /** Lower-case names. */
  readonly headers: Headers
  readonly body: string
}

export interface Asked {
  readonly provider: string
  readonly model: string
  readonly nowMs: number
  /** The key, so that no message repeats it. */
  readonly secret: string | null
}

/** A limit that comes back later than this is a spent quota: no run waits for it. */
const quotaAfterMs = 600_000

interface Said {
  readonly error: JsonRecord
  /** One sentence for people. */
  readonly message: string
  /** Everything the provider itself wrote as prose. Fields that echo the request are not part of it. */
  readonly prose: string
  /** Codes, types and statuses, lower case. */
  readonly codes: ReadonlyArray<string>
  readonly code: string | null
  readonly requestId: string | null
  /** An HTTP status that the error object carries. */
  readonly status: number | null
}

const httpStatus = (value: unknown): number | null => {
  const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value
  return typeof status === "number" && Number.isInteger(status) && status >= 400 && status <= 599
    ? status
    : null
}

const firstText = (...values: ReadonlyArray<unknown>): string =>
  values.map(text).find((value) => value !== "") ?? ""

const read = (body: string): Said => {
  const parsed = parse(body)
  const outer = Array.isArray(parsed) ? record(parsed[0]) : record(parsed)
  const inner = outer["error"] ?? outer["errors"] ?? outer
  const error = Array.isArray(inner) ? record(inner[0]) : record(inner)
  const metadata = record(error["metadata"])
  const detail = record(list(outer["detail"])[0])
  const plain = parsed === undefined && !looksLikeHtml(body) ? body : ""
  const message = firstText(
    inner,
    error["message"],
    outer["message"],
    outer["detail"],
    detail["msg"],
    typeof parsed === "string" ? parsed : "",
    looksLikeHtml(body) ? htmlTitle(body) : "",
    plain
  )
  const named = [
    error["code"],
    error["type"],
    error["status"],
    outer["code"],
    metadata["error_type"],
    error["limit_source"]
  ]
  const reasons = list(error["details"]).map((each) => record(each)["reason"])
  const codes = [...named, ...reasons].map(text).filter((code) => code !== "" && code !== "error")
  return {
    error,
    message,
    prose: [message, text(metadata["raw"]), text(error["limit_source"])].join("\n"),
    codes: codes.map((code) => code.toLowerCase()),
    code: codes[0] ?? null,
    requestId: firstText(outer["request_id"], error["request_id"]) || null,
    status: httpStatus(error["code"]) ?? httpStatus(error["status"])
  }
}

const isQuota = (said: Said, hint: Hint | null, hard: boolean): boolean => {
  const long = hint !== null && hint.certain && hint.delay_ms > quotaAfterMs
  const short = hint !== null && hint.delay_ms <= quotaAfterMs
  return long || hard || (!short && P.some(P.softQuotaTexts, said.prose))
}

const kindOf = (status: number | null, said: Said, hint: Hint | null): ModelErrorKind => {
  const coded = (pattern: RegExp) => said.codes.some((code) => pattern.test(code))
  const limited =
    status === 429 || (status === null && (coded(P.rateCodes) || P.some(P.rateTexts, said.prose)))
  const hardQuota = coded(P.quotaCodes) || P.some(P.quotaTexts, said.prose)
  if (status === 402) return "quota_exhausted"
  if (limited) return isQuota(said, hint, hardQuota) ? "quota_exhausted" : "rate_limit"
  if (status === 401) return "auth"
  if (status === 403) return hardQuota ? "quota_exhausted" : "auth"
  if (status === 413 || coded(P.overflowCodes)) return "context_overflow"
  if (P.some(P.overflowTexts, said.prose) && !P.some(P.notOverflow, said.prose)) return "context_overflow"
  if ((status === null || status === 400) && hardQuota) return "quota_exhausted"
  if (status === 529 || coded(P.overloadedCodes)) return "overloaded"
  if ((status === null || status >= 498) && P.some(P.overloadedTexts, said.prose)) return "overloaded"
  if (status === null && coded(P.authCodes)) return "auth"
  const unknownModel = coded(P.modelCodes) || P.some(P.modelTexts, said.prose)
  if (unknownModel && (status === null || status === 400 || status === 404 || status === 422))
    return "model_not_found"
  if (status === 408 || status === 409 || status === 425) return "retryable"
  if (status !== null && status >= 500) return "provider"
  if (status !== null && status >= 400) return "invalid_request"
  if (coded(P.timeoutCodes)) return "retryable"
  return coded(P.invalidCodes) ? "invalid_request" : "provider"
}

/** Kinds that a server's `x-should-retry: true` cannot make worth another try. */
const final: ReadonlySet<ModelErrorKind> = new Set([
  "auth",
  "quota_exhausted",
  "context_overflow",
  "model_not_found"
])

const redirected = (status: number | null) => status !== null && status >= 300 && status < 400

const retryableOf = (kind: ModelErrorKind, status: number | null, headers: Headers): boolean | undefined => {
  const wish = headers["x-should-retry"]?.trim().toLowerCase()
  if (wish === "false") return false
  if (wish === "true" && !final.has(kind)) return true
  return redirected(status) ? false : undefined
}

const describe = (
  failure: Failure,
  status: number | null,
  kind: ModelErrorKind,
  said: Said,
  asked: Asked
): string => {
  const who = status === null ? `${asked.provider} reported an error` : `${asked.provider} answered ${status}`
  if (redirected(status)) return `${who}: the API URL redirects to another address; give that address itself`
  const html = looksLikeHtml(failure.body) ? "a web page in place of an answer" : ""
  const what = [said.message, html].filter((part) => part !== "").join(", ")
  const about = kind === "model_not_found" ? ` for model ${JSON.stringify(asked.model)}` : ""
  const hint = /guardrail restrictions/i.test(said.message)
    ? " (the account's privacy settings leave no endpoint; see openrouter.ai/settings/privacy)"
    : ""
  return `${who}${about}: ${what === "" ? "no details given" : what}${hint}`
}

const isoDate = (ms: number): string | null =>
  Option.match(DateTime.make(ms), { onNone: () => null, onSome: DateTime.formatIso })

/** The error that a failed request means. Its message is one bounded line without markup and without the key. */
export const classify = (failure: Failure, asked: Asked): ModelError => {
  const said = read(failure.body)
  const { headers } = failure
  const status = failure.status === null || failure.status < 300 ? said.status : failure.status
  const delay = announcedDelay(said.prose)
  const hint =
    retryAfter(headers, asked.nowMs) ??
    limitReset(headers, asked.nowMs) ??
    bodyHint(said.error, asked.nowMs) ??
    (delay === null ? null : { delay_ms: delay, certain: true })
  const kind = kindOf(status, said, hint)
  const retryable = retryableOf(kind, status, headers)
  return modelError({
    provider: asked.provider,
    model: asked.model,
    kind,
    ...(retryable === undefined ? {} : { retryable }),
    message: oneLine(redact(describe(failure, status, kind, said, asked), asked.secret)),
    status_code: status,
    retry_after_ms: hint?.delay_ms ?? null,
    resets_at: kind === "quota_exhausted" && hint !== null ? isoDate(asked.nowMs + hint.delay_ms) : null,
    provider_code: said.code === null ? null : oneLine(redact(said.code, asked.secret), 100),
    request_id:
      oneLine(
        redact(
          firstText(headers["x-request-id"], headers["request-id"], headers["cf-ray"], said.requestId),
          asked.secret
        ),
        100
      ) || null
  })
}
