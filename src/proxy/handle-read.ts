import type { IncomingMessage, ServerResponse } from 'node:http'

import { pathBefore } from '../http/request-target.ts'
import { createRowEncoder, encodeFlatPage, readPreferences } from '../v2/index.ts'
import type { ProxyContext } from './context.ts'
import type { Authorisation } from '../partners/partner.ts'
import { addressOf } from './read-request.ts'
import { readHistories } from '../reads/histories.ts'
import { collectPage } from '../reads/collect-page.ts'
import { answerRead, authoriseRead, jsonType, queryOf, type ReadAnswer } from './answer-read.ts'
import { decodeNextLink, encodeNextLink, type NextLink, invalidNextLink } from '../reads/next-link.ts'
import { openPageSource } from '../reads/page-source.ts'
import type { ReadSession } from '../reads/read-upstream.ts'

/** Marks of one answer at most (service-facts 1). */
const PAGE_SIZE = 1_000

/**
 * `GET …/V2/Attendance/AttendanceRecords?$filter=…`: the recorded marks of V3's answer in the flat form, one page of at most
 * 1000. The page is complete before its first byte goes out, so an upstream that fails is an error and never a short page;
 * the next page is read when the client asks for it, so a slow client holds V3 back.
 */
export async function handleRead(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const authorisation = await authoriseRead(context, request)
  await answerRead(context, authorisation, response, 'collection', (session) =>
    readPage(context, authorisation, request, session),
  )
}

/**
 * `GET …/V2/Attendance/AttendanceRecords/$count?$filter=…`: the number of recorded marks as a text. Paging and order do not
 * change it (OData protocol 11.2.10).
 */
export async function handleReadCount(
  context: ProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const authorisation = await authoriseRead(context, request)
  await answerRead(context, authorisation, response, 'collection', async (session) => {
    const source = openPageSource(context.reads, session, authorisation, queryOf(request))
    const wish = { from: firstPage(''), skip: 0, size: 0, last: true, count: true }
    const { count } = await collectPage(source, wish)
    return { body: String(count), contentType: 'text/plain', rows: 0 }
  })
}

async function readPage(
  context: ProxyContext,
  authorisation: Authorisation,
  request: IncomingMessage,
  session: ReadSession,
): Promise<ReadAnswer> {
  const { partner } = authorisation
  const signer = { secret: context.reads.linkSecret, owner: authorisation.owner }
  const rawQuery = queryOf(request)
  const tokenText = context.reads.planner.tokenOf(rawQuery)
  const token = tokenText === undefined ? firstPage(rawQuery) : decodeNextLink(tokenText, signer)
  const source = openPageSource(context.reads, session, authorisation, token.query)
  const { plan } = source
  if (token.window >= plan.queries.length) throw invalidNextLink()
  const first = tokenText === undefined
  const left = first ? plan.top : token.rest
  const { size, rest } = pageSize(request, left)
  const page = await collectPage(source, {
    from: token,
    skip: first ? plan.skip : 0,
    size,
    last: rest === 0,
    count: first && plan.count,
  })
  const rows = await readHistories(session, partner.reads, plan.select, page.rows)
  // The path as the client wrote it: the partner may be found by its prefix.
  const address = addressOf(request)
  const { metadata } = readPreferences('', plan.format ?? request.headers.accept ?? '')
  const next =
    page.next === undefined ? undefined : encodeNextLink({ ...page.next, query: token.query, rest }, signer)
  const body = encodeFlatPage({
    context: `${pathBefore(address, 1)}/$metadata#AttendanceRecords`,
    metadata,
    rows: rows.map(createRowEncoder(plan.select, metadata)),
    count: first && plan.count ? page.count : undefined,
    next: next === undefined ? undefined : `${address}?$skiptoken=${next}`,
    dataEnvelope: partner.dataEnvelope,
  })
  return { body, contentType: jsonType(metadata), rows: rows.length }
}

function firstPage(query: string): NextLink {
  return { query, rest: undefined, window: 0, link: undefined, given: '' }
}

/** The smaller of the service's page, what is left of `$top`, and `Prefer: odata.maxpagesize` (OData protocol 8.2.8.5). */
function pageSize(
  request: IncomingMessage,
  left: number | undefined,
): { size: number; rest: number | undefined } {
  const prefer = [request.headers['prefer'] ?? []].flat().join()
  const wanted = /(?:^|[,; ])(?:odata\.)?maxpagesize=(\d{1,9})/i.exec(prefer)?.[1]
  const limit = wanted === undefined ? PAGE_SIZE : Math.min(PAGE_SIZE, Math.max(1, Number(wanted)))
  if (left === undefined) return { size: limit, rest: undefined }
  const size = Math.min(limit, left)
  return { size, rest: left - size }
}
