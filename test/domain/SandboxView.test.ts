import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { isWithin, type Machine, shownAt, shows, viewOf } from "../../src/domain/SandboxView.ts"

const machine: Machine = {
  home: "/home/ada",
  hidden: ["/home", "/root", "/var/lib/runs"],
  roots: [
    "/home/ada/.cargo",
    "/home/ada/.nvm/versions/node/v24",
    "/tmp/tools/node",
    "/usr/lib/jvm",
    "/home/ada",
    "/home",
    "/home/ada/.local",
    "/var/lib"
  ],
  credentials: ["/home/ada/.cargo/credentials.toml", "/etc/shadow", "/home/ada/.ssh/id"]
}
const places = {
  writable: [
    { from: "/var/lib/runs/1/place", at: "/home/ada/src/app" },
    { from: "/var/lib/runs/1/task", at: "/var/lib/runs/1/task" }
  ]
}
const view = viewOf(machine, places)

describe("what a command sees", () => {
  it.each([
    ["/usr/bin/node", "/usr/bin/node"],
    ["/etc/passwd", "/etc/passwd"],
    ["/home/ada/.cargo/bin/cargo", "/home/ada/.cargo/bin/cargo"],
    ["/tmp/tools/node/bin/node", "/tmp/tools/node/bin/node"],
    ["/home/ada/src/app/package.json", "/var/lib/runs/1/place/package.json"],
    ["/var/lib/runs/1/task/home", "/var/lib/runs/1/task/home"],
    ["/home/ada/.ssh/id", null],
    ["/home/ada/.cargo/credentials.toml", null],
    ["/home/ada/.netrc", null],
    ["/home/bert/secret", null],
    ["/root/.bashrc", null],
    ["/run/docker.sock", null],
    ["/tmp/other", null],
    ["/etc/shadow", null],
    ["/var/lib/runs/2/events.jsonl", null],
    ["/home/ada/src/app2/x", null]
  ])("at %s is %s", (path, shown) => {
    assert.strictEqual(shownAt(view, path), shown)
  })

  const name = fc.constantFrom("home", "ada", "tmp", "run", "usr", "bin", ".local", "x", "var", "root")
  const path = fc.array(name, { minLength: 1, maxLength: 5 }).map((names) => `/${names.join("/")}`)
  const anyMachine = fc.record({
    home: fc.option(path),
    hidden: fc.array(path, { maxLength: 3 }),
    roots: fc.array(path, { maxLength: 5 }),
    credentials: fc.array(path, { maxLength: 3 })
  })

  it("nothing private is seen but through a root that lies in it, whatever the machine", () => {
    fc.assert(
      fc.property(anyMachine, path, (any, at) => {
        const seen = viewOf(any, { writable: [] })
        const secret = [
          ...any.hidden,
          ...(any.home === null ? [] : [any.home]),
          "/tmp",
          "/var/tmp",
          "/run"
        ].filter((place) => isWithin(at, place))
        const through = any.roots.some(
          (root) => isWithin(at, root) && secret.every((place) => isWithin(root, place) && root !== place)
        )
        if (secret.length > 0 && !through) assert.isFalse(shows(seen, at), JSON.stringify(seen))
        if (any.credentials.includes(at)) assert.isNull(shownAt(seen, at), JSON.stringify(seen))
        if (secret.length === 0 && !any.credentials.some((file) => isWithin(at, file)))
          assert.strictEqual(shownAt(seen, at), at)
      }),
      { numRuns: 2000 }
    )
  })

  it("what it may write lies over everything else, and nothing else can be written to stay", () => {
    fc.assert(
      fc.property(anyMachine, path, (any, at) => {
        const seen = viewOf(any, { writable: [{ from: "/place", at }] })
        assert.strictEqual(shownAt(seen, `${at}/file`), "/place/file")
        assert.deepStrictEqual(
          seen.filter((mount) => mount._tag === "Writable"),
          [{ _tag: "Writable", from: "/place", at }]
        )
      })
    )
  })
})
