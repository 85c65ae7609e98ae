import { readdirSync, readFileSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { join } from 'node:path'

import { mergeScriptCovs } from '@bcoe/v8-coverage'

/** The number of coverage entries of a script that are added up at a time. The limit bounds memory. */
const MAX_READ = 40

/** Adds up the coverage that all processes and threads wrote to `folder` (NODE_V8_COVERAGE), for scripts whose URL begins with `root`. */
export function readCoverage(folder: string, root: string): Map<string, Profiler.ScriptCoverage> {
  const read = new Map<string, Profiler.ScriptCoverage[]>()
  const addUp = (own: Profiler.ScriptCoverage[]): Profiler.ScriptCoverage[] => {
    const sum = mergeScriptCovs(own)
    return sum === undefined ? [] : [sum]
  }
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as {
      result: Profiler.ScriptCoverage[]
    }
    for (const script of result) {
      if (!script.url.startsWith(root)) continue
      const own = [...(read.get(script.url) ?? []), script]
      read.set(script.url, own.length < MAX_READ ? own : addUp(own))
    }
  }
  return new Map([...read].flatMap(([url, own]) => addUp(own).map((sum) => [url, sum] as const)))
}
