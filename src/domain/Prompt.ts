/**
 * The system prompt's shape: ordered, named sections. Stable ones come first and are byte-identical from turn to turn,
 * so that a provider can cache them.
 */
import { Schema } from "effect"
import type { InjectedContext } from "./Conversation.ts"

export const PromptSection = Schema.Struct({
  name: Schema.String,
  cache: Schema.Literals(["stable", "dynamic"]),
  content: Schema.String
})
export type PromptSection = typeof PromptSection.Type

/** A section as the model reads it. */
export const renderSection = (section: PromptSection): string =>
  `<section name='${section.name}' cache='${section.cache}'>\n${section.content}\n</section>`

/** What the harness adds, as the model reads it. */
export const renderContext = (item: InjectedContext): string =>
  `[injected_context:${item.source}]\n${item.content}`
