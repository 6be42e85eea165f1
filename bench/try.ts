import { makeLongRun } from "./longRun.ts"
import { cpSync } from "node:fs"
const run = await makeLongRun(process.argv[2]!, Number(process.argv[3]))
console.log(run.home.folder, run.repository, run.run_id, run.events, run.bytes)
