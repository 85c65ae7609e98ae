import { AdapterError } from '../errors.ts'
import { historyKey, type ReadRules, toHistory, toHistoryQueries } from '../translate/index.ts'
import type { FlatReply, FlatRow } from '../v2/index.ts'
import { readCollection } from './collect-page.ts'
import { type ReadSession, readUpstream } from './read-upstream.ts'

/** Pages of one query at most: forty marks that were changed five hundred times each. */
const MAX_PAGES = 20
/** States of all marks of one answer: a hundred changes of each of a thousand marks. */
const MAX_STATES = 100_000

/** `withHistories` where the partner wants it and the client's `$select` has it; else the marks as they are. */
export function readHistories(
  session: ReadSession,
  { histories }: Pick<ReadRules, 'histories'>,
  select: Pick<ReadonlySet<string>, 'has'> | undefined,
  marks: readonly FlatReply[],
): Promise<readonly FlatRow[]> {
  if (!histories || select?.has('AttendanceHistorys') === false) return Promise.resolve(marks)
  return withHistories(marks, (query) => readUpstream(session, 'StatutoryAttendanceRecordHistorys', query))
}

/**
 * The marks with their states in V3's history, in V3's order; one mark after another would be a call each, so they are requested
 * for in groups. `fetch` gives the JSON of a V3 answer to a raw query, undefined where V3 has no history.
 * Errors: those of `fetch`, `ADP_UPSTREAM_PROTOCOL` for a reply that is not a history or does not end.
 */
async function withHistories(
  marks: readonly FlatReply[],
  fetch: (query: string) => Promise<unknown>,
): Promise<FlatRow[]> {
  const states = new Map<string, FlatReply[]>(marks.map((mark) => [historyKey(mark), []]))
  let count = 0
  for (const first of toHistoryQueries(marks)) {
    let query: string | undefined = first
    for (let page = 0; query !== undefined; page += 1) {
      if (page === MAX_PAGES) throw broken('does not end')
      const json = await fetch(query)
      if (json === undefined) throw broken('is missing: it has no StatutoryAttendanceRecordHistorys')
      const { rows, link } = readCollection(json)
      count += rows.length
      if (count > MAX_STATES) throw broken('holds more states than an answer may')
      for (const row of rows) {
        const state = toHistory(row)
        if (state === undefined) throw broken('holds a row that is not a state of a mark')
        // The history of another mark was not asked for: it is left out.
        states.get(historyKey(state))?.push(state)
      }
      query = link
    }
  }
  return marks.map((mark) => ({ ...mark, histories: states.get(historyKey(mark)) ?? [] }))
}

function broken(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `The service's history of changes ${fault}.`)
}
