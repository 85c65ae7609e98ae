import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import * as z from 'zod'

import { comparePair } from '../src/compare/diff/compare-pair.ts'

/** Compares two lists of rows and counts the differences. */
export type Differ = (v2: readonly unknown[], v3: readonly unknown[]) => number

export const differNames = ['markbridge', 'jsondiffpatch', 'microdiff', 'deep-diff'] as const
export type DifferName = (typeof differNames)[number]

/**
 * The number of rows that our differ compares at a time. A real run divides the marks by days, so that both parts of a comparison have the
 * same records.
 */
const WINDOW = 40_000

/** Compares the rows with our differ, `WINDOW` rows at a time. Counts each missing row and each differing field once. */
const compareInWindows: Differ = (v2, v3) => {
  let found = 0
  const added = v3.length - v2.length
  for (let from = 0; from < v2.length; from += WINDOW) {
    const others = v3.slice(from === 0 ? 0 : from + added, from + added + WINDOW)
    for (const { comparison } of comparePair({
      kind: 'marks',
      v2: v2.slice(from, from + WINDOW),
      v3: others,
    })) {
      const { verdict, differences } = comparison
      found += verdict === 'same' ? 0 : Math.max(1, differences.length)
    }
  }
  return found
}

const functionSchema = z.custom<(...args: readonly unknown[]) => unknown>(
  (value) => typeof value === 'function',
)

/** Loads a differ. Finds other packages by path, so that the code compiles even if they are not installed in this folder. */
export async function loadDiffer(name: DifferName): Promise<Differ> {
  if (name === 'markbridge') return compareInWindows
  const resolve = (path: string): string => fileURLToPath(new URL(`./node_modules/${path}`, import.meta.url))
  if (name === 'deep-diff') {
    const { diff } = z
      .object({ diff: functionSchema })
      .parse(Object.assign({}, createRequire(import.meta.url)(resolve('deep-diff')) as object))
    return (v2, v3) => lengthOf(diff(v2, v3))
  }
  if (name === 'microdiff') {
    const loaded = z
      .object({ default: functionSchema })
      .parse({ ...((await import(resolve('microdiff/dist/index.js'))) as object) })
    return (v2, v3) => lengthOf(loaded.default(v2, v3))
  }
  const { create } = z
    .object({ create: functionSchema })
    .parse({ ...((await import(resolve('jsondiffpatch/lib/index.js'))) as object) })
  // jsondiffpatch gives its best results if it matches elements by id and not by position.
  const objectHash = (row: { readonly ExternalID?: string }): string | undefined => row.ExternalID
  const patcher = z.object({ diff: functionSchema }).loose().parse(create({ objectHash }))
  return (v2, v3) => countLeaves(patcher.diff.call(patcher, v2, v3))
}

const lengthOf = (found: unknown): number => (Array.isArray(found) ? found.length : 0)

/** Counts the changes in a delta of jsondiffpatch, in which every array is one change. */
function countLeaves(delta: unknown): number {
  if (Array.isArray(delta)) return 1
  if (typeof delta !== 'object' || delta === null) return 0
  return Object.entries(delta).reduce(
    (sum, [name, value]) => sum + (name === '_t' ? 0 : countLeaves(value)),
    0,
  )
}
