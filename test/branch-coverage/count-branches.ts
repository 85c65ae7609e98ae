import { globSync, readFileSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import {
  type CoverageMap,
  type CoverageMapData,
  createCoverageMap,
  type FileCoverage,
} from '@vitest/istanbul-lib-coverage'
import { convert } from 'ast-v8-to-istanbul'
import { parseSync } from 'vite'

/**
 * Returns the coverage of a folder below `src/`: `branches` and `lines` in percent, the number of branches, and the branches that never
 * ran, as `file:line`.
 */
export async function countBranches(
  root: string,
  folder: string,
  seen: ReadonlyMap<string, Profiler.ScriptCoverage>,
): Promise<{ branches: number; lines: number; total: number; uncovered: readonly string[] }> {
  const map = createCoverageMap({})
  const uncovered: string[] = []
  for (const file of globSync(`src/${folder}/**/*.ts`, { cwd: root }).sort()) {
    const own = await toCoverage(join(root, file), seen)
    map.merge(own)
    uncovered.push(...own.files().flatMap((path) => uncoveredOf(root, own.fileCoverageFor(path))))
  }
  const { branches, lines } = map.getCoverageSummary()
  return { branches: percent(branches), lines: percent(lines), total: branches.total, uncovered }
}

/** Returns the coverage of a file that no test loaded. */
function unused(url: string, length: number): Profiler.ScriptCoverage {
  const ranges = [{ startOffset: 0, endOffset: length, count: 0 }]
  return { scriptId: '0', url, functions: [{ functionName: '', ranges, isBlockCoverage: true }] }
}

async function toCoverage(
  path: string,
  seen: ReadonlyMap<string, Profiler.ScriptCoverage>,
): Promise<CoverageMap> {
  const url = pathToFileURL(path).href
  const code = stripTypeScriptTypes(readFileSync(path, 'utf8'))
  const coverage = seen.get(url) ?? unused(url, code.length)
  const { program } = parseSync(path, code)
  const data: unknown = await convert({ ast: program, code, wrapperLength: 0, coverage })
  return createCoverageMap(data as CoverageMapData)
}

function uncoveredOf(root: string, { path, branchMap, b }: FileCoverage): string[] {
  return Object.entries(branchMap).flatMap(([id, { type, loc, locations }]) =>
    (b[id] ?? []).flatMap((count, index) =>
      count > 0
        ? []
        : [`${path.slice(root.length)}:${locations[index]?.start.line ?? loc.start.line} ${type}`],
    ),
  )
}

function percent({ covered, total }: { covered: number; total: number }): number {
  return total === 0 ? 100 : (100 * covered) / total
}
