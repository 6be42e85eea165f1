/**
 * Ceilings that hold for root as well, and where no control group is to be had: whoever watches a command from outside
 * counts its processes, their memory and what is left of the disk, and says when it is enough.
 */
import { type Duration, Effect, Option, Schema, Stream } from "effect"
import { readdir, readFile, statfs } from "node:fs/promises"
import { totalmem } from "node:os"

export interface Ceilings {
  readonly processes: number
  /** Of all its processes together, as far as it is theirs alone. */
  readonly memory_bytes: number
  /** Of the disk that it writes to, what it may use up; null: all but 256 MiB, and half of it where there is little. */
  readonly disk_bytes: number | null
}

/** Of a disk with room, what stays free. */
const reserve = 256 * 1024 * 1024

/** What must stay free when so much was free at the start. */
const floorOf = ({ disk_bytes }: Ceilings, free: number): number =>
  disk_bytes === null ? Math.min(reserve, free / 2) : free - disk_bytes

export const usualCeilings: Ceilings = {
  processes: 4096,
  memory_bytes: Math.floor(totalmem() * 0.8),
  disk_bytes: null
}

/** Of so many processes the memory is looked at. */
const maxMeasured = 512

/** TMPFS_MAGIC of linux/magic.h. */
const tmpfs = 0x01021994

/** Places of a sandbox that are memory, and whose files nobody needs to hold. */
const inMemory = ["dev", "dev/shm", "tmp", "var/tmp", "run"]

const Status = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({ "child-pid": Schema.Int }),
    Schema.Struct({ stopped: Schema.Literal("processes") })
  ])
)

type StatusStream = Stream.Stream<Uint8Array, unknown>

/** What bubblewrap and landlock's helper say on their status descriptor, as far as it counts here. */
const saidOn = (status: StatusStream) =>
  status.pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.map((line) => Schema.decodeUnknownOption(Status)(line)),
    Stream.filter(Option.isSome),
    Stream.map(({ value }) => value)
  )

interface Seen {
  readonly processes: number
  readonly memory_bytes: number
  readonly free_bytes: number
}

/** `proc`: where these processes are listed. */
const measure = async (proc: string, pids: ReadonlyArray<string | number>, place: string): Promise<Seen> => {
  const sizes = await Promise.all(
    pids.slice(0, maxMeasured).map(async (pid) => {
      const status = await readFile(`${proc}/${pid}/status`, "latin1").catch(() => "")
      const kilobytes = (name: string) =>
        Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0)
      return { own: kilobytes("RssAnon"), shared: kilobytes("RssShmem") }
    })
  )
  const disk = await statfs(place).catch(() => null)
  return {
    processes: pids.length,
    // What is shared is counted once, by the one that has most of it.
    memory_bytes:
      (sizes.reduce((sum, { own }) => sum + own, 0) + Math.max(0, ...sizes.map(({ shared }) => shared))) *
      1024,
    free_bytes: disk === null ? Number.POSITIVE_INFINITY : disk.bavail * disk.bsize
  }
}

const lookInside = async (child: number, place: string): Promise<Seen> => {
  // What the sandbox's own /proc lists is what is in it. Gone: then there is nothing to count.
  const root = `/proc/${child}/root`
  const pids = (await readdir(`${root}/proc`).catch(() => [])).filter((name) => /^\d+$/.test(name))
  const seen = await measure(`${root}/proc`, pids, place)
  const files = await Promise.all(
    inMemory.map(async (name) => {
      const disk = await statfs(`${root}/${name}`).catch(() => null)
      return disk === null || disk.type !== tmpfs ? 0 : (disk.blocks - disk.bfree) * disk.bsize
    })
  )
  return { ...seen, memory_bytes: seen.memory_bytes + files.reduce((sum, bytes) => sum + bytes, 0) }
}

const parentOf = async (pid: string): Promise<string | null> => {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "")
  // The name, before the last bracket, may hold anything.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] ?? null
}

const lookBelow = async (ancestor: number, place: string): Promise<Seen> => {
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name))
  const children = new Map<string, Array<string>>()
  for (const [pid, parent] of await Promise.all(pids.map(async (pid) => [pid, await parentOf(pid)] as const)))
    if (parent !== null) children.set(parent, [...(children.get(parent) ?? []), pid])
  const below = [...(children.get(String(ancestor)) ?? [])]
  // Grows as it is walked.
  for (const pid of below) below.push(...(children.get(pid) ?? []))
  return measure("/proc", below, place)
}

const tooMany = ({ processes }: Ceilings): string => `it made more than ${processes} processes`

/** Looks at each period: short enough for a fork bomb to stay small, long enough to cost nothing. Completes with the
 * first thing that is too much. */
const until = (
  look: () => Promise<Seen>,
  ceilings: Ceilings,
  period: Duration.Input
): Effect.Effect<string> =>
  Effect.gen(function* () {
    const floor = floorOf(ceilings, (yield* Effect.promise(look)).free_bytes)
    while (true) {
      yield* Effect.sleep(period)
      const seen = yield* Effect.promise(look)
      if (seen.processes > ceilings.processes) return tooMany(ceilings)
      if (seen.memory_bytes > ceilings.memory_bytes)
        return `it took more than ${Math.round(ceilings.memory_bytes / 1024 / 1024)} MiB of memory`
      if (seen.free_bytes < floor)
        return `it left less than ${(floor / 1024 / 1024).toFixed(1)} MiB of the disk free`
    }
  })

/** Looks at the processes that the status says are a command's: completes with what was too much, and never otherwise. */
const watching =
  (look: (pid: number, place: string) => Promise<Seen>, period: Duration.Input) =>
  (status: StatusStream, place: string, ceilings: Ceilings): Effect.Effect<string> =>
    saidOn(status).pipe(
      Stream.flatMap(
        (said) =>
          Stream.fromEffect(
            "stopped" in said
              ? Effect.succeed(tooMany(ceilings))
              : until(() => look(said["child-pid"], place), ceilings, period)
          ),
        { concurrency: "unbounded" }
      ),
      Stream.runHead,
      Effect.catchCause(() => Effect.succeed(Option.none<string>())),
      Effect.flatMap((said) => (Option.isSome(said) ? Effect.succeed(said.value) : Effect.never))
    )

/** For a command with a /proc of its own. `place`: where it writes. */
export const watch = watching(lookInside, "100 millis")

/** For a command whose processes are those that descend from one, which takes a look at every process of the machine:
 * landlock's helper, whose own count of them is quicker. */
export const watchDescendants = watching(lookBelow, "250 millis")
