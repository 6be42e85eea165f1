import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Result, Schema } from "effect"
import fc from "fast-check"
import { RunEvent, type EventData, type UnknownEvent } from "../../../src/domain/Event.ts"
import { ToolCallId } from "../../../src/domain/Ids.ts"
import {
  decodeEvent,
  decodeLine,
  encodeLine,
  JournalLine,
  maxInlineBytes,
  maxLineBytes,
  mayRefer,
  noLine,
  resolveReferences,
  toLine
} from "../../../src/domain/JournalCodec.ts"
import { sha256 } from "../../../src/layers/journal/Hash.ts"
import { created, note, runId, story } from "./support.ts"

const header = { sequence: 7, previous: noLine, created_at: "2026-11-29T10:00:00.000Z" }
const encode = (event: RunEvent) => Result.getOrThrow(encodeLine(sha256, header, event))
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

const roundTrip = Effect.fnUntraced(function* (event: RunEvent) {
  const { blobs, line } = encode(event)
  const kept = new Map(blobs.map((blob) => [blob.hash, blob.bytes]))
  const envelope = yield* Effect.fromResult(decodeLine(line.subarray(0, -1)))
  const data = mayRefer(line)
    ? yield* resolveReferences(envelope.data, (ref) =>
        Effect.fromNullishOr(kept.get(ref.$blob)).pipe(Effect.orDie)
      )
    : envelope.data
  return yield* Effect.fromResult(decodeEvent({ ...envelope, data }))
})

const requested = (args: Record<string, unknown>): RunEvent => ({
  event_type: "tool.requested",
  data: { call: { id: ToolCallId.make("c"), name: "t", arguments: args }, effect: "read" }
})

describe("a journal line", () => {
  it("has its keys in one order, compact, and ends in one newline", () => {
    assert.strictEqual(
      text(encode(note('a "note"\nof two lines')).line),
      `{"version":1,"sequence":7,"previous":"${"0".repeat(64)}","created_at":"2026-11-29T10:00:00.000Z",` +
        `"event_type":"run.noted","data":{"note":"a \\"note\\"\\nof two lines"}}\n`
    )
  })

  it("is what the published schema describes", () => {
    for (const event of story) {
      const flat = toLine({ version: 1, ...header, event })
      assert.isTrue(Schema.is(JournalLine)(flat), event.event_type)
      const { line } = encode(event)
      if (!mayRefer(line)) assert.deepStrictEqual(JSON.parse(text(line)), JSON.parse(JSON.stringify(flat)))
    }
  })

  // No arbitrary makes a RunId, so its events are carried once, by hand.
  const named: ReadonlyArray<RunEvent> = [
    { event_type: "run.created", data: { run_id: runId("r-1"), ...created, store_version: 1 } },
    {
      event_type: "run.forked",
      data: {
        run_id: runId("r-2"),
        source_run_id: runId("r-1"),
        fork_point_sequence: 3,
        fork_point_event_type: "model.completed",
        base_sha: created.base_sha
      }
    }
  ]
  for (const event of named)
    it.effect(`carries a ${event.event_type}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* roundTrip(event), event)
      })
    )
  for (const member of RunEvent.members) {
    if (named.some((event) => event.event_type === member.fields.event_type.literal)) continue
    it.effect.prop(`carries any ${member.fields.event_type.literal}`, [Arbitrary.schema(member)], ([event]) =>
      Effect.gen(function* () {
        const read: RunEvent | UnknownEvent = yield* roundTrip(event)
        assert.deepStrictEqual(JSON.parse(JSON.stringify(read)), JSON.parse(JSON.stringify(event)))
      })
    )
  }

  const long = fc
    .tuple(fc.string({ unit: "binary", minLength: 1, maxLength: 8 }), fc.integer({ min: 2000, max: 9000 }))
    .map(([piece, times]) => piece.repeat(times))
  const string = fc.oneof(
    { weight: 6, arbitrary: fc.string({ unit: "binary" }) },
    { weight: 2, arbitrary: long },
    { weight: 1, arbitrary: long.map((s) => `${s}\ud800`) }
  )
  const key = fc.oneof(fc.constantFrom("$blob", "$literal", "bytes", "json", "__proto__", "$"), fc.string())
  const { json } = fc.letrec<{ json: unknown }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.oneof(
        string,
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.record({
          $blob: fc.constantFrom(sha256(new Uint8Array()), "x"),
          bytes: fc.nat(9),
          json: fc.constant(true)
        })
      ),
      fc.array(tie("json"), { maxLength: 4 }),
      fc.dictionary(key, tie("json"), { maxKeys: 4 })
    )
  }))

  it("brings back whatever a model passes to a tool, also what looks like a reference", async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(key, json, { maxKeys: 4 }), async (args) => {
        const plain: unknown = JSON.parse(JSON.stringify(args))
        const read = await Effect.runPromise(roundTrip(requested(args)))
        assert.strictEqual(read.event_type, "tool.requested")
        const { call }: EventData<"tool.requested"> = JSON.parse(JSON.stringify(read.data))
        assert.deepStrictEqual(call.arguments, plain)
      }),
      { numRuns: 300 }
    )
  })

  it("never holds a long string, and never gets long itself", () => {
    const { blobs, line } = encode(
      requested({ many: Array.from({ length: 60_000 }, (_, n) => `item ${n} of many`) })
    )
    assert.isBelow(line.length, maxInlineBytes)
    assert.strictEqual(blobs.length, 1)
    fc.assert(
      fc.property(fc.array(long, { maxLength: 6 }), (strings) => {
        const { blobs, line } = encode(requested({ strings }))
        assert.isAtMost(line.length, maxLineBytes)
        const bytes = strings.map((s) => new TextEncoder().encode(s).length)
        assert.strictEqual(blobs.length, bytes.filter((n) => n > maxInlineBytes).length)
      })
    )
  })

  it("keeps what is at the bound and moves what is over it, in UTF-8 bytes", () => {
    assert.strictEqual(encode(note("é".repeat(maxInlineBytes / 2))).blobs.length, 0)
    assert.strictEqual(encode(note(`${"é".repeat(maxInlineBytes / 2)}.`)).blobs.length, 1)
  })

  it("of something else is refused with its reason", () => {
    const reason = (line: string) =>
      Result.match(decodeLine(new TextEncoder().encode(line)), {
        onFailure: (fault) => fault.reason,
        onSuccess: () => "read"
      })
    const { line } = encode(note("x"))
    assert.strictEqual(reason(text(line)), "read")
    assert.strictEqual(reason(text(line).replace('"version":1', '"version":2')), "newer_version")
    assert.strictEqual(reason(text(line).replace('"version":1', '"version":0')), "damaged")
    assert.strictEqual(reason(text(line).slice(0, -3)), "damaged")
    assert.strictEqual(reason("null"), "damaged")
    assert.strictEqual(reason(""), "damaged")
  })
})
