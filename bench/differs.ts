import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import * as z from 'zod'

import { comparePair } from '../src/compare/diff/compare-pair.ts'

/** Compares two lists of rows and counts the differences. */
export type Differ = (v2: readonly unknown[], v3: readonly unknown[]) => number

export const differNames = ['markbridge', 'jsondiffpatch', 'microdiff', 'deep-diff'] as const
export type DifferName = (typeof differNames)[number]

/** Rows of one window; a run cuts its windows by days, so that both sides have the same keys in each. */
const WINDOW = 40_000

/** Our differ, window by window. A row that one side lacks, or a field, is one difference. */
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

/** Loads a peer of this folder; their types are not needed where the folder has not been installed. */
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
  // Its best: elements found by their id, not by their position.
  const objectHash = (row: { readonly ExternalID?: string }): string | undefined => row.ExternalID
  const patcher = z.object({ diff: functionSchema }).loose().parse(create({ objectHash }))
  return (v2, v3) => countLeaves(patcher.diff.call(patcher, v2, v3))
}

const lengthOf = (found: unknown): number => (Array.isArray(found) ? found.length : 0)

/** Changes in a delta of jsondiffpatch: each is an array. */
function countLeaves(delta: unknown): number {
  if (Array.isArray(delta)) return 1
  if (typeof delta !== 'object' || delta === null) return 0
  return Object.entries(delta).reduce(
    (sum, [name, value]) => sum + (name === '_t' ? 0 : countLeaves(value)),
    0,
  )
}
