/** Asks the model at the given address once and prints what it says: run as a process of its own. */
import { Effect } from "effect"
import { makeModel } from "../../../src/layers/model/Providers.ts"
import { collect, request } from "./harness.ts"

const apiUrl = process.argv[2] ?? ""
const options = {
  provider: "openai-compatible",
  model: "m",
  apiUrl,
  apiKey: null,
  allowCustomEndpoint: false
}

process.stdout.write(
  await Effect.runPromise(
    makeModel(options).pipe(
      Effect.flatMap((model) => collect(model.stream(request()))),
      Effect.map((played) => played.text)
    )
  )
)
