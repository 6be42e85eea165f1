/**
 * One line of a command as the user typed it, split into an argv the POSIX way. No shell ever sees it, so everything
 * that only a shell could do is refused by name instead of being passed on as text.
 */
import { Result } from "effect"

const operators = new Set(["|", "&", ";", "<", ">", "(", ")", "`", "\n"])

/** The argv of a command line, or one sentence that says what to do instead. */
export const parseCommandLine = (
  line: string
): Result.Result<readonly [string, ...Array<string>], string> => {
  const words: Array<string> = []
  let word: string | null = null
  let quote: "'" | '"' | null = null
  for (let i = 0; i < line.length; i++) {
    const char = line.charAt(i)
    const next = line.charAt(i + 1)
    if (char === "\0") return Result.fail("it contains a NUL character")
    if (quote === "'") {
      if (char === "'") quote = null
      else word += char
    } else if (quote === '"') {
      if (char === '"') quote = null
      else if (char === "\\" && (next === '"' || next === "\\" || next === "$" || next === "`")) {
        word += next
        i++
      } else word += char
    } else if (char === "'" || char === '"') {
      quote = char
      word ??= ""
    } else if (char === "\\") {
      if (next === "") return Result.fail("it ends with a backslash")
      word = (word ?? "") + next
      i++
    } else if (operators.has(char) || (char === "$" && next === "(")) {
      const shown = char === "\n" ? "a line break" : `an unquoted ${char === "$" ? "$(" : char}`
      return Result.fail(`it holds ${shown}, which needs a shell: repeat --check, or use sh -c '…'`)
    } else if (char === " " || char === "\t" || char === "\r") {
      if (word !== null) words.push(word)
      word = null
    } else word = (word ?? "") + char
  }
  if (quote !== null) return Result.fail(`a ${quote === "'" ? "single" : "double"} quote is not closed`)
  if (word !== null) words.push(word)
  const [first, ...rest] = words
  if (first === undefined || first === "") return Result.fail("it is empty")
  if (/^[A-Za-z_][A-Za-z0-9_]*=/.test(first)) {
    return Result.fail(`it starts with the assignment ${first}: put "env" before it`)
  }
  return Result.succeed([first, ...rest])
}

const plain = /^[A-Za-z0-9_@%+=:,./-]+$/

/** An argv as a line that a POSIX shell, and `parseCommandLine`, read back as the same argv. */
export const renderCommandLine = (argv: ReadonlyArray<string>): string =>
  argv.map((word) => (plain.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ")
