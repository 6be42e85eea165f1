import { assert, describe, it } from "@effect/vitest"
import { seccompFilter } from "../../../src/layers/sandbox/Seccomp.ts"

/** What the kernel would answer: an interpreter of the few instructions that such a filter has. */
const answerOf = (filter: Uint8Array, call: { arch: number; nr: number; args?: ReadonlyArray<number> }) => {
  const program = new DataView(filter.buffer, filter.byteOffset, filter.byteLength)
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, call.nr, true)
  data.setUint32(4, call.arch, true)
  for (const [at, value] of (call.args ?? []).entries()) data.setUint32(16 + 8 * at, value, true)
  let register = 0
  for (let at = 0; at < program.byteLength / 8; at++) {
    const code = program.getUint16(at * 8, true)
    const value = program.getUint32(at * 8 + 4, true)
    const jump = (holds: boolean) => {
      at += program.getUint8(at * 8 + (holds ? 2 : 3))
    }
    if (code === 0x20) register = data.getUint32(value, true)
    else if (code === 0x15) jump(register === value)
    else if (code === 0x35) jump(register >= value)
    else if (code === 0x45) jump((register & value) !== 0)
    else if (code === 0x06) return value
    else assert.fail(`instruction ${code} is not one of ours`)
  }
  return assert.fail("the program runs off its end")
}

const allow = 0x7fff0000
const eperm = 0x00050001
const enosys = 0x00050026
const kill = 0x80000000

describe.each([
  [
    "x64",
    0xc000003e,
    {
      read: 0,
      clone: 56,
      socket: 41,
      socketpair: 53,
      prlimit64: 302,
      shmget: 29,
      ioctl: 16,
      ptrace: 101,
      mount: 165,
      openat: 257,
      last: 470
    }
  ],
  [
    "arm64",
    0xc00000b7,
    {
      read: 63,
      clone: 220,
      socket: 198,
      socketpair: 199,
      prlimit64: 261,
      shmget: 194,
      ioctl: 29,
      ptrace: 117,
      mount: 40,
      openat: 56,
      last: 470
    }
  ]
] as const)("the filter for %s", (machine, arch, number) => {
  const filter = seccompFilter(machine) ?? new Uint8Array()
  const ask = (nr: number, ...args: ReadonlyArray<number>) => answerOf(filter, { arch, nr, args })

  it("lets ordinary calls through, and no call of another machine", () => {
    for (const nr of [number.read, number.openat, 436, 439, number.last])
      assert.strictEqual(ask(nr), allow, String(nr))
    assert.strictEqual(answerOf(filter, { arch: 0x40000003, nr: number.read }), kill)
    assert.strictEqual(ask(number.read + 0x40000000), eperm)
  })

  it("takes away what escapes start with", () => {
    for (const nr of [number.ptrace, number.mount, 428, 429, 430, 432, 438, 442])
      assert.strictEqual(ask(nr), eperm)
    for (const nr of [425, 426, 427, 435]) assert.strictEqual(ask(nr), enosys)
  })

  it("lets processes and threads be made, in no new namespace", () => {
    assert.strictEqual(ask(number.clone, 0x003d0f00), allow)
    assert.strictEqual(ask(number.clone, 17), allow)
    for (const flag of [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
      assert.strictEqual(ask(number.clone, flag | 17), eperm, flag.toString(16))
  })

  it("lets sockets of the network be made, and none that lead past it", () => {
    assert.strictEqual(ask(number.socket, 2, 1, 0), allow)
    assert.strictEqual(ask(number.socket, 10, 2, 17), allow)
    assert.strictEqual(ask(number.socket, 16, 3, 0), allow)
    assert.strictEqual(ask(number.socket, 16, 3, 9), eperm)
    for (const family of [0, 1, 17, 38, 40, 44]) assert.strictEqual(ask(number.socket, family, 1, 0), eperm)
  })

  it("lets pairs of sockets be made of which neither can be sent elsewhere from", () => {
    const [stream, datagram, raw, packets] = [1, 2, 3, 5]
    for (const kind of [stream, packets, stream | 0x80800])
      assert.strictEqual(ask(number.socketpair, 1, kind, 0), allow, String(kind))
    for (const kind of [datagram, raw, datagram | 0x80800])
      assert.strictEqual(ask(number.socketpair, 1, kind, 0), eperm, String(kind))
    assert.strictEqual(ask(number.socketpair, 30, stream, 0), eperm)
  })

  it("leaves nothing that is shared with the host where it is in its namespaces", () => {
    const onHost = seccompFilter(machine, "host") ?? new Uint8Array()
    const askHost = (nr: number, ...args: ReadonlyArray<number>) => answerOf(onHost, { arch, nr, args })
    for (const family of [0, 1, 2, 10, 16, 17, 40])
      assert.strictEqual(askHost(number.socket, family, 1, 0), eperm, String(family))
    assert.strictEqual(askHost(number.socketpair, 1, 1, 0), allow)
    assert.strictEqual(askHost(number.socketpair, 1, 2, 0), eperm)
    assert.strictEqual(askHost(number.shmget), eperm)
    assert.strictEqual(ask(number.shmget), allow)
    assert.strictEqual(askHost(number.prlimit64, 0, 7), allow)
    assert.strictEqual(askHost(number.prlimit64, 4711, 7), eperm)
    assert.strictEqual(ask(number.prlimit64, 4711, 7), allow)
    for (const nr of [number.ptrace, number.mount]) assert.strictEqual(askHost(nr), eperm)
    for (const nr of [number.read, number.openat, number.last]) assert.strictEqual(askHost(nr), allow)
    assert.strictEqual(askHost(number.ioctl, 1, 0x5412), eperm)
    assert.strictEqual(askHost(number.clone, 0x10000011), eperm)
  })

  it("puts no words into a terminal", () => {
    assert.strictEqual(ask(number.ioctl, 1, 0x5412), eperm)
    assert.strictEqual(ask(number.ioctl, 1, 0x541c), eperm)
    assert.strictEqual(ask(number.ioctl, 1, 0x5413), allow)
  })
})

it("knows no other machine", () => {
  assert.isNull(seccompFilter("s390x"))
})
