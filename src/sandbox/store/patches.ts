import type { DatabaseSync } from 'node:sqlite'
import type { Json } from '../json.ts'
import { integer, text } from './mark.ts'

/** What clients changed of LearnerPersonals: the whole entity by the number of its learner. */
export interface Patches {
  all(): ReadonlyMap<number, Record<string, Json>>
  set(learner: number, entity: Readonly<Record<string, Json>>): void
  reset(): void
  /** Another number after every change: what was read before may be kept until then. */
  version(): number
  /** Clears cached data of writes that were rolled back. */
  reload(): void
}

/** Prepares the statements of the table of patches. */
export function createPatches(database: DatabaseSync): Patches {
  const select = database.prepare('SELECT learner, body FROM patch')
  const replace = database.prepare('INSERT OR REPLACE INTO patch VALUES (?, ?)')
  let version = 0
  return {
    all: () =>
      new Map(
        select
          .all()
          .map((row) => [integer(row, 'learner'), JSON.parse(text(row, 'body')) as Record<string, Json>]),
      ),
    set: (learner, entity) => {
      replace.run(learner, JSON.stringify(entity))
      version += 1
    },
    reset: () => {
      database.exec('DELETE FROM patch')
      version += 1
    },
    version: () => version,
    reload: () => {
      version += 1
    },
  }
}
