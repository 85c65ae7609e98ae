import type { DatabaseSync } from 'node:sqlite'
import { integer, text } from './columns.ts'
import { transact } from './database.ts'

/** One entity of a learner domain, as JSON text with everything inside it. */
export interface StoredEntity {
  /** Number of the learner that it belongs to; 0 for groups and lookups. */
  readonly learner: number
  readonly key: string
  readonly body: string
}

/** The entities of the learner domains, by set, learner and key. */
export interface EntityStore {
  /** All entities of a set in order of learner and key. */
  all(set: string): StoredEntity[]
  /** Changes with every change of an entity: data that was read before may be cached until then. */
  version(): number
  /** Replaces the body of an entity; `reset` brings the seeded one back. */
  update(set: string, entity: StoredEntity): void
  reset(): void
  /** Clears cached data of writes that were rolled back. */
  reload(): void
}

/** Prepares the statements of the entity table; `compose` makes the entities of a set, which are stored when it is first read. */
export function createEntityStore(
  database: DatabaseSync,
  compose: (set: string) => readonly StoredEntity[] = () => [],
): EntityStore {
  const all = database.prepare(
    'SELECT learner, key, body FROM entity WHERE entity_set = ? ORDER BY learner, key',
  )
  const update = database.prepare(
    'UPDATE entity SET seeded = coalesce(seeded, body), body = ? WHERE entity_set = ? AND learner = ? AND key = ?',
  )
  const insert = database.prepare('INSERT INTO entity VALUES (?, ?, ?, ?, NULL)')
  const keep = database.prepare('INSERT INTO entity_set VALUES (?)')
  const kept = database.prepare('SELECT name FROM entity_set')
  const loadKept = (): Set<string> => new Set(kept.all().map((row) => text(row, 'name')))
  let composed = loadKept()
  const composeOnce = (set: string): void => {
    if (composed.has(set)) return
    transact(database, () => {
      for (const { learner, key, body } of compose(set)) insert.run(set, learner, key, body)
      keep.run(set)
    })
    composed.add(set)
  }
  let version = 0
  const read = (row: Parameters<typeof text>[0]): StoredEntity => ({
    learner: integer(row, 'learner'),
    key: text(row, 'key'),
    body: text(row, 'body'),
  })
  return {
    all: (set) => {
      composeOnce(set)
      return all.all(set).map(read)
    },
    version: () => version,
    update: (set, entity) => {
      update.run(entity.body, set, entity.learner, entity.key)
      version += 1
    },
    reload: () => {
      composed = loadKept()
      version += 1
    },
    reset: () => {
      database.exec('UPDATE entity SET body = seeded, seeded = NULL WHERE seeded IS NOT NULL')
      version += 1
    },
  }
}
