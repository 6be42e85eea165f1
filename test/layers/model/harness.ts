import { Effect, Redacted, Result, Stream } from "effect"
import type { ConversationItem, ModelTurn } from "../../../src/domain/Conversation.ts"
import { makeModel, type ModelOptions } from "../../../src/layers/model/Providers.ts"
import type { ModelEvent, ModelRequest } from "../../../src/services/Model.ts"
import { startModelServer, type ModelServer, type Script } from "../../support/ModelServer.ts"

export const key = "sk-test-0123456789abcdef"

export const request = (conversation: ReadonlyArray<ConversationItem> = []): ModelRequest => ({
  system: [{ name: "role", cache: "stable", content: "You help." }],
  conversation: [{ role: "user", content: "Go." }, ...conversation],
  tools: [{ name: "read_file", description: "Reads.", parameters: { type: "object", properties: {} } }]
})

/** A server that lives as long as the scope. */
export const serving = (script: Script) =>
  Effect.acquireRelease(
    Effect.promise(() => startModelServer(script)),
    (server) => Effect.promise(() => server.close())
  )

export const modelAt = (server: ModelServer, provider: string, options: Partial<ModelOptions> = {}) =>
  makeModel({
    provider,
    model: "m",
    apiUrl: provider === "anthropic" ? server.url : `${server.url}/v1`,
    apiKey: Redacted.make(key),
    allowCustomEndpoint: false,
    ...options
  })

export interface Played {
  readonly text: string
  readonly reasoning: string
  readonly events: ReadonlyArray<ModelEvent>
  readonly turn: ModelTurn
}

/** The deltas and the turn of one whole stream; the stream's own failure otherwise. */
export const collect = <E>(stream: Stream.Stream<ModelEvent, E>) =>
  Effect.map(Stream.runCollect(stream), (events): Played => {
    const of = (type: "text" | "reasoning") =>
      events.map((event) => (event.type === type ? event.text : "")).join("")
    const completed = events.filter((event) => event.type === "completed")
    const last = events.at(-1)
    if (completed.length !== 1 || last?.type !== "completed")
      throw new Error("a stream must end with its one completed event")
    return { text: of("text"), reasoning: of("reasoning"), events, turn: last.turn }
  })

export const ask = (server: ModelServer, provider: string, sent = request()) =>
  Effect.flatMap(modelAt(server, provider), (model) => Effect.result(collect(model.stream(sent))))

/** The failure of a request that must fail. */
export const failureOf = (server: ModelServer, provider: string, sent = request()) =>
  Effect.map(ask(server, provider, sent), (result) => {
    if (Result.isSuccess(result)) throw new Error("it should have failed")
    if (result.failure._tag !== "ModelError") throw result.failure
    return result.failure
  })

export const turnOf = (server: ModelServer, provider: string, sent = request()) =>
  Effect.map(ask(server, provider, sent), (result) => {
    if (Result.isFailure(result)) throw result.failure
    return result.success
  })
