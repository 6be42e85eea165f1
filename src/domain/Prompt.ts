/**
 * The system prompt's shape: ordered, named sections. Stable ones come first and are byte-identical from turn to turn,
 * so that a provider can cache them.
 */
export interface PromptSection {
  readonly name: string
  readonly cache: "stable" | "dynamic"
  readonly content: string
}

/** A section as the model reads it. */
export const renderSection = (section: PromptSection): string =>
  `<section name='${section.name}' cache='${section.cache}'>\n${section.content}\n</section>`
