import { createRowReader } from '../translate/index.ts'
import type { ReadContext } from './context.ts'
import type { Authorisation } from '../partners/partner.ts'
import { type PageSource, readCollection } from './collect-page.ts'
import { type ReadSession, readUpstream } from './read-upstream.ts'

/**
 * Plans a V2 query for a client and opens the V3 pages that answer it. The ids of the partner's letters are looked up once a page
 * holds a row that may be a mark: a read without marks costs no further call. Until they are known V3 cannot leave their rows out,
 * so its next links promise nothing. Errors: those of the plan; of `fetch` those of `readUpstream` and of `UnmarkedCodes`.
 */
export function openPageSource(
  { planner, codes }: Pick<ReadContext, 'planner' | 'codes'>,
  session: ReadSession,
  client: Authorisation,
  rawQuery: string,
): PageSource {
  const known = codes.knownRules(client)
  const rules = known ?? client.partner.reads
  const plan = planner.plan(rawQuery, rules)
  let readRow = createRowReader(rules)
  let isSure = known !== undefined
  return {
    plan: isSure ? plan : { ...plan, narrowed: false },
    readRow: (row) => readRow(row),
    fetch: async (query) => {
      const json = await readUpstream(session, 'AttendanceRecords', query)
      if (!isSure && readCollection(json).rows.some((row) => typeof readRow(row) === 'object')) {
        readRow = createRowReader(await codes.rulesFor(session, client))
        isSure = true
      }
      return json
    },
  }
}
