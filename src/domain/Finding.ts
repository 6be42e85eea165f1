/**
 * One thing that the check of a receipt looked at.
 */
export interface Finding {
  /** `skipped`: it could not be looked at, which proves nothing and disproves nothing. */
  readonly status: "ok" | "failed" | "skipped"
  /** A file of the bundle, or a part of the work. */
  readonly subject: string
  /** One line. */
  readonly message: string
}

export const ok = (subject: string, message: string): Finding => ({ status: "ok", subject, message })
export const failed = (subject: string, message: string): Finding => ({ status: "failed", subject, message })
export const skipped = (subject: string, message: string): Finding => ({
  status: "skipped",
  subject,
  message
})
