import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { refuseAnthropic } from "./wire/anthropicRules.ts"
import { deliver } from "./wire/deliver.ts"
import { refuseOpenAi } from "./wire/openai.ts"
import { errorAnswer } from "./wire/steps.ts"
import { isRecord, jsonAnswer, type Protocol, type Rendered, type Step } from "./wire/types.ts"

export { gate, type Gate } from "./wire/gate.ts"
export * from "./wire/steps.ts"
export type { Chunks, Step, ToolCallSpec, TurnSpec, UsageSpec } from "./wire/types.ts"

/** How the exchange ended on the wire. */
export type Closed = "complete" | "aborted by client" | "cut by server"

export interface ModelRequest {
  /** Number of the request on this server, from 0, in order of arrival of the whole body. */
  readonly index: number
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: string
  readonly protocol: Protocol
  /** Lower-case names; repeated headers are joined by a comma. */
  readonly headers: Readonly<Record<string, string>>
  readonly rawBody: Buffer
  /** The decoded body; undefined when there is none or it is not JSON. */
  readonly json: unknown
  /** Why the request was answered with the provider's own 4xx in place of a step. */
  readonly violation: string | undefined
  /** Resolves when the response has ended in one way or another. */
  readonly closed: Promise<Closed>
}

/** One step per request, in order, or a function of the request. `undefined` means that nothing was expected. */
export type Script =
  | ReadonlyArray<Step>
  | ((request: ModelRequest, call: number) => Step | undefined | Promise<Step | undefined>)

export interface ModelServerOptions {
  /** The key that every call must bring (`authorization: Bearer` or `x-api-key`). Absent: none is asked for. */
  readonly apiKey?: string
  /** Ids that `GET /v1/models` lists. */
  readonly models?: ReadonlyArray<string>
  /** `false`: histories are not checked against the rules of the real services. */
  readonly validate?: boolean
}

export interface ModelServer extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`; OpenAI clients take it with `/v1`, Anthropic clients as it is. */
  readonly url: string
  readonly port: number
  /** Everything that arrived. */
  readonly requests: ReadonlyArray<ModelRequest>
  /** The requests for a model's turn: every POST. */
  readonly calls: ReadonlyArray<ModelRequest>
  /** Calls beyond the script's end and calls of unknown addresses. A passing test has none. */
  readonly unexpected: ReadonlyArray<ModelRequest>
  /** Calls that a real service would have refused. */
  readonly violations: ReadonlyArray<ModelRequest>
  /** Steps that nobody has asked for yet; 0 for a function. */
  readonly remaining: number
  /** Resolves with call `count` (from 1) as soon as it has arrived; rejects when the server closes before. */
  readonly received: (count: number) => Promise<ModelRequest>
  /** Destroys every connection, ends every stalled answer, and fails when a connection or an answer is left. */
  readonly close: () => Promise<void>
}

const protocolOf = (method: string, path: string): Protocol => {
  if (method === "POST" && path.endsWith("/chat/completions")) return "openai-chat"
  return method === "POST" && path.endsWith("/v1/messages") ? "anthropic" : "other"
}

const headersOf = (message: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(message.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value ?? "")
    ])
  )

const readBody = async (message: IncomingMessage): Promise<Buffer> => {
  const parts: Array<Buffer> = []
  for await (const part of message) parts.push(Buffer.from(part))
  return Buffer.concat(parts)
}

const parse = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString("utf8"))
  } catch {
    return undefined
  }
}

const complete = { chunks: undefined, gates: new Map(), ending: { _tag: "Complete" } } as const

/** Starts a scripted model server on a free loopback port. */
export const startModelServer = async (
  script: Script,
  options: ModelServerOptions = {}
): Promise<ModelServer> => {
  const requests: Array<ModelRequest> = []
  const calls: Array<ModelRequest> = []
  const unexpected: Array<ModelRequest> = []
  const violations: Array<ModelRequest> = []
  const waiting: Array<{ readonly count: number; readonly arrival: PromiseWithResolvers<ModelRequest> }> = []
  const sockets = new Set<Socket>()
  const answers = new Set<Promise<void>>()
  let consumed = 0

  const keyFault = (headers: Readonly<Record<string, string>>) =>
    options.apiKey === undefined ||
    headers["authorization"] === `Bearer ${options.apiKey}` ||
    headers["x-api-key"] === options.apiKey
      ? undefined
      : "invalid api key"

  const historyFault = (protocol: Protocol, json: unknown, headers: Readonly<Record<string, string>>) => {
    if (options.validate === false || protocol === "other") return undefined
    return protocol === "anthropic" ? refuseAnthropic(json, headers) : refuseOpenAi(json)
  }

  const surprise = (request: ModelRequest, status: number, message: string): readonly [Rendered] => {
    unexpected.push(request)
    return [errorAnswer(request.protocol, status, message)]
  }

  const choose = async (request: ModelRequest): Promise<readonly [Rendered, Step?]> => {
    const { method, path, protocol } = request
    if (method === "GET" && path.endsWith("/models")) {
      const data = (options.models ?? []).map((id) => ({ id, object: "model", created: 0, owned_by: "test" }))
      return [jsonAnswer(200, { object: "list", data, has_more: false })]
    }
    if (method !== "POST") return surprise(request, 404, `the model server knows no ${method} ${path}`)
    if (request.violation !== undefined)
      return [errorAnswer(protocol, keyFault(request.headers) === undefined ? 400 : 401, request.violation)]
    const call = consumed++
    const exhausted = `the script is exhausted: call ${call + 1} was not expected`
    try {
      const step = typeof script === "function" ? await script(request, call) : script[call]
      if (step === undefined) return surprise(request, 500, exhausted)
      const json = isRecord(request.json) ? request.json : {}
      const streamOptions = json["stream_options"]
      const rendered = step.render({
        protocol,
        model: typeof json["model"] === "string" ? json["model"] : "unknown",
        stream: json["stream"] === true,
        includeUsage: isRecord(streamOptions) && streamOptions["include_usage"] === true,
        index: call
      })
      return [rendered, step]
    } catch (cause) {
      return surprise(request, 500, `the script failed: ${String(cause)}`)
    }
  }

  const answer = async (message: IncomingMessage, response: ServerResponse) => {
    const gone = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<Closed>()
    let cutHere = false
    response.on("error", () => gone.resolve())
    response.on("close", () => {
      gone.resolve()
      closed.resolve(cutHere ? "cut by server" : response.writableFinished ? "complete" : "aborted by client")
    })
    const rawBody = await readBody(message)
    const address = new URL(message.url ?? "/", "http://127.0.0.1")
    const method = message.method ?? ""
    const protocol = protocolOf(method, address.pathname)
    const headers = headersOf(message)
    const json = parse(rawBody)
    const request: ModelRequest = {
      index: requests.length,
      method,
      path: address.pathname,
      query: address.search,
      protocol,
      headers,
      rawBody,
      json,
      violation: method === "POST" ? (keyFault(headers) ?? historyFault(protocol, json, headers)) : undefined,
      closed: closed.promise
    }
    requests.push(request)
    if (method === "POST") calls.push(request)
    if (request.violation !== undefined) violations.push(request)
    for (const { arrival, count } of waiting) if (count === calls.length) arrival.resolve(request)
    const [rendered, step] = await choose(request)
    await deliver(response, rendered, step?.delivery ?? complete, gone.promise, () => {
      cutHere = true
    })
  }

  const http = createServer((message, response) => {
    const running = answer(message, response).catch((cause: unknown) => {
      // A client that goes away during its own upload leaves no request; anything else ends that connection.
      response.destroy(cause instanceof Error ? cause : undefined)
    })
    answers.add(running)
    void running.finally(() => answers.delete(running))
  })
  http.on("connection", (socket) => {
    socket.setNoDelay(true)
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
    socket.on("error", () => undefined)
  })
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject)
    http.listen(0, "127.0.0.1", resolve)
  })
  const bound = http.address()
  if (bound === null || typeof bound === "string") throw new Error("the model server has no port")

  const received = (count: number): Promise<ModelRequest> => {
    const call = calls[count - 1]
    if (call !== undefined) return Promise.resolve(call)
    const arrival = Promise.withResolvers<ModelRequest>()
    arrival.promise.catch(() => undefined)
    waiting.push({ count, arrival })
    return arrival.promise
  }

  const close = async () => {
    if (!http.listening) return
    const ended = new Promise<void>((resolve) => http.close(() => resolve()))
    const open = [...sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve)))
    for (const socket of sockets) socket.destroy()
    await Promise.all([ended, ...open, ...answers])
    for (const { arrival, count } of waiting)
      arrival.reject(new Error(`the model server closed before call ${count}; it had ${calls.length}`))
    if (sockets.size > 0 || answers.size > 0)
      throw new Error(`the model server leaks ${sockets.size} connections and ${answers.size} answers`)
  }

  return {
    url: `http://127.0.0.1:${bound.port}`,
    port: bound.port,
    requests,
    calls,
    unexpected,
    violations,
    get remaining() {
      return typeof script === "function" ? 0 : Math.max(0, script.length - consumed)
    },
    received,
    close,
    [Symbol.asyncDispose]: close
  }
}
