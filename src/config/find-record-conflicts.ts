import { resolve } from 'node:path'

import type { ErrorDetail } from '../errors.ts'

/** Finds recordings in clear text, and folders that partners would share: their bounds and keys are not the same. */
export function findRecordConflicts(records: readonly Readonly<Record<string, unknown>>[]): ErrorDetail[] {
  const firsts = new Map<string, number>()
  return records.flatMap(({ to, key, pseudonyms }, index) => {
    const path = `partners[${index}].record`
    if (to === undefined) return []
    const found: ErrorDetail[] = []
    if ((key === undefined) === (pseudonyms === undefined))
      found.push({ code: 'conflict', message, target: path })
    if (typeof to !== 'string') return found
    const first = firsts.get(resolve(to))
    if (first === undefined) firsts.set(resolve(to), index)
    else
      found.push({
        code: 'conflict',
        message: `is the folder of partners[${first}].record as well: give each partner its own`,
        target: `${path}.to`,
      })
    return found
  })
}

const message =
  'must have key (encrypted) or pseudonyms, and not both: recordings are never written in clear text'
