/** A door that the test opens. The server says when it has come to it. */
export interface Gate {
  /** Resolves when the server waits at the gate for the first time. */
  readonly reached: Promise<void>
  /** Lets the server, and everyone who comes later, pass. */
  readonly open: () => void
  /** For the server: resolves when the gate is open. */
  readonly pass: () => Promise<void>
}

export const gate = (): Gate => {
  const reached = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  return {
    reached: reached.promise,
    open: opened.resolve,
    pass: () => {
      reached.resolve()
      return opened.promise
    }
  }
}
