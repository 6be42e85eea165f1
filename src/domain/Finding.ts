/**
 * One thing that the check of a receipt looked at.
 */
import { Schema } from "effect"

export const Finding = Schema.Struct({
  /** `skipped`: it could not be looked at, which proves nothing and disproves nothing. */
  status: Schema.Literals(["ok", "failed", "skipped"]),
  /** A file of the bundle, or a part of the work. */
  subject: Schema.String,
  /** One line. */
  message: Schema.String
})
export type Finding = typeof Finding.Type

export const ok = (subject: string, message: string): Finding => ({ status: "ok", subject, message })
export const failed = (subject: string, message: string): Finding => ({ status: "failed", subject, message })
export const skipped = (subject: string, message: string): Finding => ({
  status: "skipped",
  subject,
  message
})
