import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { directoriesToList, grantsOf, type Listings } from "../../src/domain/SandboxGrants.ts"
import { isWithin, type Machine, shows, viewOf } from "../../src/domain/SandboxView.ts"

/** The listings of a machine that holds these files and what leads to them. */
const listingsOf = (files: ReadonlyArray<string>): Listings => {
  const listings = new Map<string, Set<string>>([["/", new Set()]])
  for (const file of files) {
    const names = file.split("/").slice(1)
    for (const [at, name] of names.entries()) {
      const directory = `/${names.slice(0, at).join("/")}`
      listings.set(directory, (listings.get(directory) ?? new Set()).add(name))
    }
  }
  return new Map([...listings].map(([directory, names]) => [directory, [...names]]))
}

const only = (listings: Listings, directories: ReadonlyArray<string>): Listings =>
  new Map([...listings].filter(([directory]) => directories.includes(directory)))

describe("what is granted", () => {
  it("is everything that is not private, around what is hidden, and the holes in what is", () => {
    const machine: Machine = {
      home: "/home/ada",
      hidden: ["/home", "/var/lib/runs"],
      roots: ["/home/ada/.cargo", "/home/ada/.nvm", "/usr/lib/jvm"],
      credentials: ["/etc/shadow", "/home/ada/.cargo/credentials"]
    }
    const view = viewOf(machine, { writable: [] })
    const listings = listingsOf([
      "/usr/bin/node",
      "/etc/passwd",
      "/etc/shadow",
      "/etc/ssl/cert",
      "/var/lib/runs/1",
      "/var/lib/dpkg/status",
      "/var/tmp/x",
      "/home/ada/.cargo/bin/cargo",
      "/home/ada/.cargo/credentials",
      "/home/ada/.nvm/node",
      "/home/ada/.ssh/id",
      "/tmp/x"
    ])
    assert.deepStrictEqual(grantsOf(view, listings).toSorted(), [
      "/etc/passwd",
      "/etc/ssl",
      "/home/ada/.cargo/bin",
      "/home/ada/.nvm",
      "/usr",
      "/var/lib/dpkg"
    ])
    assert.deepStrictEqual(grantsOf(view, new Map()).toSorted(), ["/home/ada/.nvm"])
  })

  it("is what the view shows, whatever the machine", () => {
    const name = fc.constantFrom("a", "b", "tmp", "home", "etc")
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => `/${names.join("/")}`)
    const paths = fc.array(path, { maxLength: 5 })
    fc.assert(
      fc.property(
        fc.record({
          home: fc.option(path),
          hidden: paths,
          roots: paths,
          credentials: paths,
          source: path,
          files: fc.array(path, { minLength: 1, maxLength: 20 })
        }),
        ({ files, source, ...machine }) => {
          const view = [...viewOf(machine, { writable: [] }), { _tag: "Empty", at: source } as const]
          const { credentials, hidden, home, roots } = machine
          const places = [...hidden, ...roots, ...credentials, source, ...(home === null ? [] : [home])]
          const listings = listingsOf([...files, ...places])
          const grants = grantsOf(view, only(listings, directoriesToList(view)))
          const isGranted = (file: string) => grants.some((grant) => isWithin(file, grant))
          for (const file of files.filter((each) => !listings.has(each)))
            assert.strictEqual(isGranted(file), shows(view, file), file)
          for (const mount of view)
            if (mount._tag !== "ReadOnly" && !shows(view, mount.at))
              assert.isFalse(isGranted(mount.at), mount.at)
        }
      ),
      { numRuns: 2000 }
    )
  })
})
