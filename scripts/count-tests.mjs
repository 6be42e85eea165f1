// `node scripts/count-tests.mjs REPORT`: the closing line "N passed, N failed" from vitest's JSON report. A file that
// could not be run counts as one failure; a report without a single passed test is a failure too.
import fs from "node:fs"

const { success, testResults } = JSON.parse(fs.readFileSync(process.argv[2], "utf8"))
const count = { passed: 0, failed: 0, skipped: 0 }
for (const { assertionResults, status } of testResults) {
  const states = assertionResults.map((test) => test.status)
  count.passed += states.filter((state) => state === "passed").length
  count.failed += states.filter((state) => state === "failed").length
  count.skipped += states.filter((state) => state !== "passed" && state !== "failed").length
  if (status === "failed" && !states.includes("failed")) count.failed += 1
}
const skipped = count.skipped === 0 ? "" : `, ${count.skipped} skipped`
process.stdout.write(`${count.passed} passed, ${count.failed} failed${skipped}\n`)
process.exitCode = success && count.failed === 0 && count.passed > 0 ? 0 : 1
