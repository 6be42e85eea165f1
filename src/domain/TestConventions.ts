/**
 * How the common ecosystems name tests and what decides how checks run, and how their tests are written and skipped.
 * Data: what is not here is not known.
 */

/** A directory that holds tests. */
const testDirectory = /^(?:tests?|__tests__|specs?|e2e|testdata|__snapshots__)$/i

const testNames: ReadonlyArray<RegExp> = [
  // JavaScript and TypeScript: a.test.ts, a.spec.mjs, a.cy.js; and their snapshots.
  /\.(?:test|tests|spec|specs|cy|e2e)\.[^.]+$/,
  /\.snap$/,
  // Go, Ruby, Elixir, Dart, C and others: a_test.go, a_spec.rb.
  /_(?:test|tests|spec)\.[^.]+$/,
  // Python and others: test_a.py.
  /^test_.*\.[^.]+$/,
  // Java, Kotlin, C#, Swift, PHP, Scala, Haskell: ATest.java, ASpec.hs.
  /(?:Tests?|TestCase|Specs?|IT)\.(?:java|kts?|groovy|scala|cs|fs|vb|swift|php|l?hs|mm?|cpp|cc)$/,
  /^tests?\.(?:[cm]?[jt]sx?|py|rs|rb|go|php|lua)$/,
  /\.(?:bats|feature)$/
]

const segmentsOf = (path: string): ReadonlyArray<string> => path.split("/")

/** Whether a path is a test's by the conventions of its ecosystem. */
export const isTestPath = (path: string): boolean => {
  const segments = segmentsOf(path)
  const name = segments.at(-1) ?? ""
  return (
    segments.slice(0, -1).some((part) => testDirectory.test(part)) || testNames.some((one) => one.test(name))
  )
}

const configurationNames: ReadonlyArray<RegExp> = [
  // Node and its kin.
  /^(?:package\.json|deno\.jsonc?|bunfig\.toml|\.npmrc|turbo\.json|nx\.json|lerna\.json|pnpm-workspace\.yaml)$/,
  /^(?:vitest|vite|jest|mocha|karma|ava|jasmine|playwright|cypress|wdio|babel)\.(?:config|conf|setup|workspace)\./,
  /^(?:vitest|jest|mocha|test)[.-](?:setup|global-setup|setup-files?)\./,
  /^\.(?:mocharc|babelrc|taprc|nycrc|c8rc|jasmine)(?:\..+)?$/,
  /^(?:tsconfig.*\.json|jsconfig\.json|biome\.jsonc?|\.?eslint.*|\.oxlintrc\.json|\.prettierrc.*)$/,
  // Python.
  /^(?:pytest\.ini|\.pytest\.ini|pyproject\.toml|tox\.ini|setup\.(?:cfg|py)|conftest\.py|noxfile\.py|\.coveragerc)$/,
  /^(?:mypy\.ini|\.mypy\.ini|\.?ruff\.toml|\.flake8|\.pylintrc|sitecustomize\.py)$/,
  // Build tools.
  /^(?:GNU)?[Mm]akefile$|\.mk$|^(?:j|J)ustfile$|^Taskfile\.ya?ml$|^(?:CMakeLists\.txt|meson\.build|BUILD(?:\.bazel)?|WORKSPACE)$/,
  /^(?:Cargo\.toml|nextest\.toml|clippy\.toml|build\.rs|go\.(?:mod|work)|\.golangci\.ya?ml)$/,
  /^(?:pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|build\.sbt|.*\.(?:csproj|fsproj|sln|runsettings))$/,
  /^(?:phpunit\.xml(?:\.dist)?|composer\.json|Gemfile|Rakefile|\.rspec|mix\.exs|Package\.swift|stack\.yaml|.*\.cabal)$/,
  // Continuous integration.
  /^(?:\.gitlab-ci\.yml|\.travis\.yml|Jenkinsfile|azure-pipelines\.yml|\.pre-commit-config\.yaml)$/
]
const configurationPlaces =
  /(?:^|\/)(?:\.github\/(?:workflows|actions)|\.circleci|\.ci|\.husky|\.buildkite)\/|(?:^|\/)\.cargo\/config(?:\.toml)?$/

/** Whether a path decides which checks run, or how. */
export const isConfigurationPath = (path: string): boolean => {
  const name = segmentsOf(path).at(-1) ?? ""
  return configurationPlaces.test(path) || configurationNames.some((one) => one.test(name))
}

/** Lines that keep a test from running, and that mean nothing else anywhere. */
const skips: ReadonlyArray<RegExp> = [
  /\b(?:describe|it|test|suite|context|bench)(?:\.\w+)*\.(?:skip|only|todo|skipIf|runIf|fixme|fails|failing)\b/,
  /(?<![\w.$])(?:xit|xdescribe|xtest|xcontext|xspecify|fit|fdescribe)\s*(?:\(|\.each)/,
  /@?pytest\.(?:mark\.(?:skip|skipif|xfail)|skip|importorskip|xfail)\b|\bpytestmark\s*=/,
  /@(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b|\bself\.skipTest\(|\braise\s+(?:unittest\.)?SkipTest\b/,
  /\b[tb]\.Skip(?:f|Now)?\(|^\s*\/\/go:build\s+ignore\b/,
  /#\[(?:cfg_attr\([^\]]*,\s*)?ignore\b/,
  /@(?:Disabled|Ignore)\b|\[(?:Ignore|Explicit)(?:\(|\])|\bXCTSkip\b|\bGTEST_SKIP\b|\bDISABLED_\w/,
  /\bmarkTest(?:Skipped|Incomplete)\(|@(?:module)?tag\s+:skip\b|\bpendingWith\b/
]
/** Lines that keep a test from running when they stand in one. */
const skipsInTests: ReadonlyArray<RegExp> = [
  /\.(?:skip|only|todo)\s*\(/,
  /\b(?:skip|todo|only)\s*:\s*(?:true|["'`])|\bSkip\s*=\s*"/,
  /^\s*(?:skip|pending|xit)\b\s*(?:$|["'(]|do\b)/,
  /\bif\s*\(?\s*(?:False|false|0)\s*\)?\s*(?::|\{|$)/,
  /\b(?:process\.exit|sys\.exit|os\._exit|os\.Exit)\s*\(\s*0?\s*\)/
]

/** Whether a line keeps a test from running. `inTest`: it stands in a test or in what configures tests. */
export const skipsTests = (line: string, inTest: boolean): boolean =>
  skips.some((one) => one.test(line)) || (inTest && skipsInTests.some((one) => one.test(line)))

/** A line that declares a test. */
export const declaresTest = (line: string): boolean =>
  /^\s*(?:(?:it|test|specify)(?:\.\w+)*\s*\(|(?:async\s+)?def\s+test\w*\s*\(|func\s+(?:Test|Fuzz)\w*\s*\(|#\[(?:\w+::)?test\b|@(?:Test|ParameterizedTest)\b|\[(?:Fact|Theory|Test|TestMethod)\b|it\s+["'])/.test(
    line
  )
