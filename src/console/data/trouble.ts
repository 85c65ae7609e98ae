import { sql } from 'kysely'

import { recordStates, stateCodes } from '../../journal/index.ts'
import { readCounts } from './counts.ts'
import type { Scope, Trouble } from './port.ts'
import { type Db, rowsOf } from './schema.ts'

/** The number of minutes after which a trouble is no longer reported if no call to V3, or no denial, has followed. */
const LATELY = 5
const MINUTE_S = 60

export async function readTrouble(db: Db, nowMs: number, scope: Scope): Promise<readonly Trouble[]> {
  const [counted, waiting] = [await readCounts(db, 'hour', nowMs, MINUTE_S), await readWaiting(db)]
  const all = [...v3Troubles(counted), ...denials(counted), ...waiting]
  return all.filter(({ partner }) => partner === undefined || scope === 'all' || scope.includes(partner))
}

type Counted = Awaited<ReturnType<typeof readCounts>>

/** Reports that V3 fails if most calls in the latest minute failed. The beginning is the first minute of an unbroken series. */
function v3Troubles({ rows, points, fromMs, stepMs }: Counted): readonly Trouble[] {
  const calls = rows.filter(({ words: [name] }) => name === 'calls')
  let [count, first] = [0, points]
  for (const [index, own] of [...Map.groupBy(calls, (row) => row.index)].toSorted(([one], [other]) => other - one)) {
    const sumOf = (some: typeof own): number => some.reduce((sum, one) => sum + one.count, 0)
    const failed = sumOf(own.filter(({ words: [, , status = ''] }) => /^(?:5xx|none)$/.test(status)))
    if (2 * failed <= sumOf(own) || (first === points && index < points - LATELY)) break
    count += failed
    first = index
  }
  return count === 0 ? [] : [{ kind: 'v3Fails', partner: undefined, count, sinceMs: fromMs + first * stepMs }]
} // prettier-ignore

/** Reports credentials that V3 denied in the last minutes. The trouble began with the first denial within the last hour. */
function denials({ rows, points, fromMs, stepMs }: Counted): readonly Trouble[] {
  const kinds = { denied: 'denied', ownDenied: 'ownDenied' } as const
  return Object.values(kinds).flatMap((kind) => {
    const own = Map.groupBy(rows.filter(({ words: [name] }) => name === kind), ({ words: [, partner = ''] }) => partner) // prettier-ignore
    return [...own].flatMap(([partner, found]): readonly Trouble[] => {
      const [first, last] = [found[0]?.index ?? 0, found.at(-1)?.index ?? 0]
      const count = found.reduce((sum, one) => sum + one.count, 0)
      return last < points - LATELY ? [] : [{ kind, partner, count, sinceMs: fromMs + first * stepMs }]
    })
  })
}

async function readWaiting(db: Db): Promise<readonly Trouble[]> {
  interface Row {
    readonly partner: string
    readonly state: number
    readonly count: number
    readonly sinceMs: number
  }
  const active = await rowsOf<Row>(db)`
    select b.partner, r.state, count(*) as count, min(b.received_ms) as "sinceMs"
    from journal_records r join journal_batches b on b.id = r.batch
    where r.active = 1 and r.state <> ${sql.lit(stateCodes.open)} group by b.partner, r.state`
  const letters = await rowsOf<Omit<Row, 'state'>>(db)`
    select b.partner, count(*) as count, min(coalesce(r.settled_ms, b.received_ms)) as "sinceMs"
    from journal_records r join journal_batches b on b.id = r.batch where r.dead_letter = 1 group by b.partner`
  const ofStates = active.flatMap(({ state, ...row }): readonly Trouble[] => {
    const kind = recordStates[state]
    return kind === 'notApplied' || kind === 'unknown' || kind === 'parked' ? [{ kind, ...row }] : []
  })
  return [...ofStates, ...letters.map((row) => ({ kind: 'deadLetters', ...row }) as const)]
}
