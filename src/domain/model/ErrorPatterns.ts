/**
 * The words in which providers report a failure, as data: what is new goes here, not into the classifier.
 */

/** Patterns named after codes match codes and types in lower case; those named after texts match prose. */
export const overflowCodes =
  /context[_-]?(?:length|window|size)[_-]?(?:exceeded|overflow)|max_prompt_tokens_exceeded|prompt_too_long|request_too_large|input_too_long|token_limit_exceeded/

const size = String.raw`context|prompt|input|messages?|conversation|request|tokens?`
const bound = String.raw`context (?:length|window|size|limit)|token limit|(?:maximum|max|limit)(?: \w+){0,3} tokens?|tokens? (?:limit|maximum)`

export const overflowTexts: ReadonlyArray<RegExp> = [
  // "prompt is too long", "Input is too long for requested model", "request too large"
  new RegExp(String.raw`\b(?:${size})\b[^.\n]{0,60}\btoo (?:long|large|big|many tokens)\b`, "i"),
  /\btoo many (?:input |prompt |total )?tokens\b/i,
  // "exceeds the context window", "exceeded model token limit", "greater than the context length"
  new RegExp(
    String.raw`\b(?:exceed(?:s|ed|ing)?|overflow(?:s|ed)?|greater than|larger than|longer than|over|beyond)\b.{0,60}?(?:${bound})`,
    "i"
  ),
  // "context length exceeded", "context window exceeds limit", "token count of 140000 exceeds the limit of 128000"
  new RegExp(
    String.raw`\b(?:${bound}|token count|number of tokens|prompt tokens|input tokens|input length|prompt length)\b.{0,60}?\b(?:exceed|overflow|surpass)`,
    "i"
  ),
  // "maximum context length is 131072 tokens. However, you requested …", "maximum prompt length is …"
  /\bmaximum (?:context|prompt|input)(?: length| size)?\b.{0,40}?\d/i,
  /\bcontext (?:length|window|size) (?:of|is) (?:only )?\d/i,
  /\b(?:reduce|shorten)\b.{0,30}?\b(?:length|size|number)\b.{0,30}?\b(?:messages?|prompt|input|tokens|context)\b/i,
  /\bfit(?:s|ting)?\b.{0,30}?\bcontext (?:length|window|size)\b/i
]

/** Sentences that speak of tokens and limits and mean something else. */
export const notOverflow: ReadonlyArray<RegExp> = [
  /\brate.?limit|throttl|too many requests|\bplease wait\b/i,
  /\bper (?:second|minute|hour|day|month)\b|\b(?:tpm|tpd|rpm|rpd)\b/i,
  // A wish for a longer answer than the model gives is a wrong request, not a full context.
  /^(?!.*\b(?:context|prompt|input|messages)\b).*\bmax_(?:completion_|output_)?tokens\b/is
]

/** A quota or balance that waiting a little does not bring back. */
export const quotaCodes =
  /insufficient[_-]?(?:quota|balance|funds|credits?)|billing|usage_limit|quota_exhausted|credits?_exhausted|payment_required|spend(?:ing)?_limit/
export const quotaTexts: ReadonlyArray<RegExp> = [
  /\binsufficient (?:balance|funds|credits?|quota)\b/i,
  /\bcredit balance\b.{0,20}\btoo low\b|\b(?:out of|not enough|no remaining) credits?\b/i,
  /\b(?:usage|spending|spend|monthly|weekly) (?:usage )?limit\b/i,
  /\bdaily\b/i,
  /shared_capacity/i
]
/** Words for a quota that may also mean a limit per minute: a short wait that the server names makes it one. */
export const softQuotaTexts: ReadonlyArray<RegExp> = [
  /\bexceeded (?:your|the) current quota\b/i,
  /\bquota (?:exceeded|exhausted|reached)\b|\bexhausted\b.{0,30}\b(?:quota|capacity)\b/i,
  /\bper day\b|\brpd\b|\btpd\b/i
]

export const rateCodes = /rate[_-]?limit|too_many_requests|resource_exhausted|throttl/
export const rateTexts: ReadonlyArray<RegExp> = [/\brate.?limit/i, /\btoo many requests\b/i, /\bthrottl/i]

export const overloadedCodes = /overloaded|over_capacity|capacity_exceeded|server_busy/
export const overloadedTexts: ReadonlyArray<RegExp> = [
  /\boverloaded\b|\bhigh (?:demand|load|traffic)\b|\bserver (?:is )?busy\b/i,
  /\b(?:over|at|no|insufficient)\b.{0,12}\bcapacity\b/i
]

export const authCodes =
  /authentication|unauthorized|invalid[_-]?api[_-]?key|permission|forbidden|unauthenticated|access_denied/

export const modelCodes = /model[_-]?not[_-]?found|invalid[_-]?model|model_not_available|unknown_model/
export const modelTexts: ReadonlyArray<RegExp> = [
  /\bmodel\b.{0,120}?\b(?:not found|not exist|not available|no longer available)\b/i,
  /\bmodel\b(?: \S+)? is (?:not supported|unknown|deprecated|invalid)\b/i,
  /\b(?:unknown|no such|invalid|unsupported) model\b/i,
  /\bnot a valid model\b|\bno endpoints found for\b|^model: /i
]

export const timeoutCodes = /timeout|timed_out|deadline_exceeded/
export const invalidCodes =
  /invalid_request|invalid_argument|bad_request|validation|unprocessable|failed_precondition/

export const some = (patterns: ReadonlyArray<RegExp>, sentence: string): boolean =>
  patterns.some((pattern) => pattern.test(sentence))
