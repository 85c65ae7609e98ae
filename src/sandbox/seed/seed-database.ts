import type { DatabaseSync } from 'node:sqlite'

import { dayNumber } from '../dates.ts'
import type { Identities } from '../identity.ts'
import { keepDay, markSeeded, readDay, transact } from '../store/database.ts'
import { fillRegisters, type RegisterSeed } from './register.ts'

/** Staff who take registers; the seeded marks are theirs. */
const staffCount = 24

/** Fills an empty database, in one transaction: staff, and the registers up to the day before `today`. */
export function seedDatabase(
  database: DatabaseSync,
  source: RegisterSeed & { readonly ids: Identities },
  today: number,
  content: string,
): void {
  const insertActor = database.prepare('INSERT INTO actor VALUES (?, ?)')
  transact(database, () => {
    for (let staff = 1; staff <= staffCount; staff += 1)
      insertActor.run(staff, source.ids.guid('user', staff))
    closeRegisters(database, source, today)
    keepDay(database, 'planned', today)
    markSeeded(database, content)
  })
}

/** Fills in the registers that are closed on the day `today` and were not yet; those of the day itself are still open. */
export function closeRegisters(database: DatabaseSync, source: RegisterSeed, today: number): void {
  const marked = readDay(database, 'marked')
  const first = marked === undefined ? dayNumber(`${source.roster.firstYear}-09-01`) : marked + 1
  if (today <= first) return
  transact(database, () => {
    fillRegisters(database, source, first, today - 1)
    keepDay(database, 'marked', today - 1)
  })
}

/**
 * Fills in the registers of some days again, as far as they are closed: those of a session that a client marked first were left
 * to it, and are missing once its mark is undone.
 */
export function refillRegisters(
  database: DatabaseSync,
  source: RegisterSeed,
  first: number,
  last: number,
): void {
  const closed = Math.min(last, readDay(database, 'marked') ?? -1)
  if (closed < first) return
  transact(database, () => fillRegisters(database, { ...source, onProgress: () => undefined }, first, closed))
}
