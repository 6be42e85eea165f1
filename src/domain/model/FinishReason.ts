/**
 * Every provider's own word for why a model stopped, mapped to the closed set.
 */
import type { FinishReason } from "../Conversation.ts"

const words: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  end_turn: "stop",
  stop_sequence: "stop",
  eos: "stop",
  tool_calls: "tool_use",
  tool_use: "tool_use",
  function_call: "tool_use",
  length: "length",
  max_tokens: "length",
  model_length: "length",
  model_context_window_exceeded: "length",
  refusal: "refusal",
  content_filter: "content_filter",
  safety: "content_filter",
  pause_turn: "pause"
}

/** A word that nobody knows means an ordinary stop: the turn's content decides what happens next. */
export const finishReason = (
  word: string | null,
  turn: { readonly calls: boolean; readonly refused: boolean }
): FinishReason => {
  const known =
    word !== null && Object.hasOwn(words, word.toLowerCase()) ? words[word.toLowerCase()] : undefined
  const said = known ?? "stop"
  // Some providers say "stop" beside tool calls, and "tool_use" beside none.
  if (said === "stop" && turn.calls) return "tool_use"
  if (said === "stop" && turn.refused) return "refusal"
  return said === "tool_use" && !turn.calls ? "stop" : said
}
