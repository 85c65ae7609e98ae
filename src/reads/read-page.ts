import { pathBefore } from '../http/request-target.ts'
import type { Authorisation } from '../partners/partner.ts'
import { createRowReader } from '../translate/index.ts'
import { createRowEncoder, encodeFlatPage, readPreferences } from '../v2/index.ts'
import { collectPage, type PageSource, readCollection } from './collect-page.ts'
import { readHistories } from './histories.ts'
import { decodeNextLink, encodeNextLink, invalidNextLink, type NextLink } from './next-link.ts'
import { jsonType, type ReadAnswer, type ReadContext, type ReadRequest } from './read-request.ts'
import { type ReadSession, readUpstream } from './read-upstream.ts'

/** Marks of one answer at most (service-facts 1). */
const PAGE_SIZE = 1_000

/**
 * `AttendanceRecords?$filter=…`: the recorded marks of V3's answer in the flat form, one page of at most 1000. The page is
 * complete before its first byte goes out, so an upstream that fails is an error and never a short page; the next page is read
 * when the client asks for it, so a slow client holds V3 back. Errors: those of the plan, of `decodeNextLink` and of V3.
 */
export async function readPage(
  context: ReadContext,
  client: Authorisation,
  request: ReadRequest,
  session: ReadSession,
): Promise<ReadAnswer> {
  const { partner } = client
  const signer = { secret: context.linkSecret, owner: client.owner }
  const link = context.planner.tokenOf(request.query)
  const start = link === undefined ? firstPage(request.query) : decodeNextLink(link, signer)
  const source = openPageSource(context, session, client, start.query)
  const { plan } = source
  if (start.window >= plan.queries.length) throw invalidNextLink()
  const isFirst = link === undefined
  const { size, rest } = pageSize(request.prefer, isFirst ? plan.top : start.rest)
  const page = await collectPage(source, {
    from: start,
    skip: isFirst ? plan.skip : 0,
    size,
    last: rest === 0,
    count: isFirst && plan.count,
  })
  const rows = await readHistories(session, partner.reads, plan.select, page.rows)
  const { metadata } = readPreferences('', plan.format ?? request.accept)
  const next =
    page.next === undefined ? undefined : encodeNextLink({ ...page.next, query: start.query, rest }, signer)
  const body = encodeFlatPage({
    context: `${pathBefore(request.address, 1)}/$metadata#AttendanceRecords`,
    metadata,
    rows: rows.map(createRowEncoder(plan.select, metadata)),
    count: isFirst && plan.count ? page.count : undefined,
    next: next === undefined ? undefined : `${request.nextAddress}?$skiptoken=${next}`,
    dataEnvelope: partner.dataEnvelope,
  })
  return { body, contentType: jsonType(metadata), rows: rows.length }
}

/**
 * `AttendanceRecords/$count?$filter=…`: the number of recorded marks as a text. Paging and order do not change it (OData
 * protocol 11.2.10). Errors: those of the plan and of V3.
 */
export async function countMarks(
  context: ReadContext,
  client: Authorisation,
  request: ReadRequest,
  session: ReadSession,
): Promise<ReadAnswer> {
  const source = openPageSource(context, session, client, request.query)
  const { count } = await collectPage(source, {
    from: firstPage(''),
    skip: 0,
    size: 0,
    last: true,
    count: true,
  })
  return { body: [String(count)], contentType: 'text/plain', rows: 0 }
}

function firstPage(query: string): NextLink {
  return { query, rest: undefined, window: 0, link: undefined, given: '' }
}

/** The smallest of the service's page, the rest of `$top`, and `Prefer: odata.maxpagesize` (OData protocol 8.2.8.5). */
function pageSize(prefer: string, left: number | undefined): { size: number; rest: number | undefined } {
  const wanted = /(?:^|[,; ])(?:odata\.)?maxpagesize=(\d{1,9})/i.exec(prefer)?.[1]
  const limit = wanted === undefined ? PAGE_SIZE : Math.min(PAGE_SIZE, Math.max(1, Number(wanted)))
  if (left === undefined) return { size: limit, rest: undefined }
  const size = Math.min(limit, left)
  return { size, rest: left - size }
}

/**
 * Plans a V2 query for a client and opens the V3 pages that answer it. The ids of the partner's letters are looked up once a page
 * holds a row that may be a mark: a read without marks costs no further call. Until they are known V3 cannot leave their rows out,
 * so its next links promise nothing. Errors: those of the plan; of `fetch` those of `readUpstream` and of `UnmarkedCodes`.
 */
function openPageSource(
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
