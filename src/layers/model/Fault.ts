/**
 * What ends an exchange in place of a proper end.
 */
import type { Exchange } from "../../domain/Wire.ts"

export type Fault = NonNullable<Exchange["fault"]>

/** The failure and everything that it names as its cause, outermost first. */
export const causes = (failure: unknown): ReadonlyArray<unknown> => {
  const chain: Array<unknown> = []
  for (let each = failure; each instanceof Error && chain.length < 10; each = each.cause) {
    chain.push(each)
    if (each instanceof AggregateError) {
      const first: unknown = each.errors[0]
      chain.push(first)
    }
  }
  return chain
}

const codeOf = (failure: unknown): string =>
  failure instanceof Error && "code" in failure && typeof failure.code === "string" ? failure.code : ""

/** The most telling of a chain of causes: a system code and the innermost message. */
export const failedAs = (failure: unknown): Fault => {
  const chain = causes(failure)
  const innermost = chain.at(-1)
  return {
    kind: "failed",
    code: chain.map(codeOf).findLast((each) => each !== "") ?? "",
    message: innermost instanceof Error ? innermost.message : String(failure)
  }
}

/** Silence that was not waited out. */
export const silence = (message: string): Fault => ({ kind: "silent", code: "", message })
