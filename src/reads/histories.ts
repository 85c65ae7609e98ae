import { AdapterError } from '../errors.ts'
import { historyKey, type ReadRules, toHistory, toHistoryQueries } from '../translate/index.ts'
import type { FlatReply, FlatRow } from '../v2/index.ts'
import { readCollection } from './collect-page.ts'
import { type ReadSession, readUpstream } from './read-upstream.ts'

/** Maximum number of pages of one query, enough for forty marks with five hundred changes each. */
const MAX_PAGES = 20
/** Maximum number of states of all marks of one answer, enough for a thousand marks with a hundred changes each. */
const MAX_STATES = 100_000

/** Returns the marks with their histories if the partner has histories switched on and the client's `$select` includes them. */
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
 * Returns the marks with their states from V3's history, in V3's order. Requests the histories of several marks in one call. `fetch`
 * returns V3's JSON, or `undefined` if V3 has no history. Throws the errors of `fetch`, and `ADP_UPSTREAM_PROTOCOL` for a reply that is not
 * a history or whose pages do not end.
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
      if (page === MAX_PAGES) throw broken(`has more than ${MAX_PAGES} pages`)
      const json = await fetch(query)
      if (json === undefined)
        throw broken('is missing, because the service has no StatutoryAttendanceRecordHistorys')
      const { rows, link } = readCollection(json)
      count += rows.length
      if (count > MAX_STATES) throw broken(`contains more than ${MAX_STATES} states`)
      for (const row of rows) {
        const state = toHistory(row)
        if (state === undefined) throw broken('contains a row that is not a state of a mark')
        // Ignores the history of a mark that was not requested.
        states.get(historyKey(state))?.push(state)
      }
      query = link
    }
  }
  return marks.map((mark) => ({ ...mark, histories: states.get(historyKey(mark)) ?? [] }))
}

function broken(fault: string): AdapterError {
  return new AdapterError(
    'ADP_UPSTREAM_PROTOCOL',
    `The service's history of changes ${fault}. No record was returned. The operator can set reads.histories: false.`,
  )
}
