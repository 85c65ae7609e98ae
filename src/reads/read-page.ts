import { createHmac, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { AdapterError } from '../errors.ts'
import { collectPage, type PageSource, readCollection, type ReadPosition } from './collect-page.ts'
import { pathBefore } from '../http/request-target.ts'
import type { Authorisation } from '../partners/partner.ts'
import { createRowReader, printSelection } from '../translate/index.ts'
import { createRowEncoder, encodeFlatPage, readPreferences } from '../v2/index.ts'
import { readHistories } from './histories.ts'
import { jsonType, type ReadAnswer, type ReadContext, type ReadRequest } from './read-request.ts'
import { type ReadSession, readUpstream } from './read-upstream.ts'

/** Maximum number of marks in one answer (service-facts 1). */
const PAGE_SIZE = 1_000

/**
 * Answers `AttendanceRecords?$filter=…` with one page of at most 1,000 recorded marks in the flat form. The page is complete before its
 * first byte is sent, so that a failure of V3 becomes an error and never a short page. The next page is read when the client requests it,
 * so V3 is read no faster than the client reads. Throws the errors of the plan, of `decodeNextLink` and of V3.
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
    context: `${pathBefore(request.address, 1)}/$metadata#AttendanceRecords${printSelection(plan)}`,
    metadata,
    rows: rows.map(createRowEncoder(plan.select, metadata)),
    count: isFirst && plan.count ? page.count : undefined,
    next: next === undefined ? undefined : `${request.nextAddress}?$skiptoken=${next}`,
    dataEnvelope: partner.dataEnvelope,
  })
  return { body, contentType: jsonType(metadata), rows: rows.length }
}

/** Answers `AttendanceRecords/$count?$filter=…` with the number of recorded marks, independent of paging (OData protocol 11.2.10). */
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

/** Returns the size of a page: the least of V2's page size, the rest of `$top`, and `odata.maxpagesize` (OData protocol 8.2.8.5). */
function pageSize(prefer: string, left: number | undefined): { size: number; rest: number | undefined } {
  const wanted = /(?:^|[,; ])(?:odata\.)?maxpagesize=(\d{1,9})/i.exec(prefer)?.[1]
  const limit = wanted === undefined ? PAGE_SIZE : Math.min(PAGE_SIZE, Math.max(1, Number(wanted)))
  if (left === undefined) return { size: limit, rest: undefined }
  const size = Math.min(limit, left)
  return { size, rest: left - size }
}

/**
 * Plans a V2 query for a client and opens the V3 pages that answer it. Looks up the ids of the letters in `reads.unmarkedCodes` only once a
 * page has a row that may be a mark. Until the ids are known, V3 cannot leave out the rows with these codes, so a next link of V3 does not
 * guarantee another mark. Throws the errors of the plan. `fetch` throws the errors of `readUpstream` and `UnmarkedCodes`.
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

/** The content of a next link. The content needs no state of the adapter, so the link works after a restart and on another instance. */
export interface NextLink extends ReadPosition {
  readonly query: string
  /** The number of rows of `$top` that are left, or `undefined` if the query has no `$top`. */
  readonly rest: number | undefined
}

/** Maximum length of a token in characters. The rows of V3's largest page fit, and the request line stays within the limit for headers. */
const MAX_TOKEN_CHARACTERS = 114_688
const MAX_STATE_BYTES = 262_144
const SIGNATURE_BYTES = 16
/** Matches text that may be sent as the query in a request line to V3. */
const QUERY = /^[\x21-\x7e]+$/
/** Matches base64url, the form of `writeGivenRows`. */
const GIVEN = /^[\w-]*$/

interface TokenSigner {
  readonly secret: Uint8Array
  /** The owner of the link. Tokens of different owners have different signatures. */
  readonly owner: string
}

/** Encodes a token and signs it, so that clients cannot alter or forge it. Throws `ADP_QUERY` if the query is too long. */
export function encodeNextLink(token: NextLink, signer: TokenSigner): string {
  const { query, rest, window, link, given } = token
  const state = deflateRawSync(JSON.stringify([query, rest ?? null, window, link ?? null, given]))
  const text = Buffer.concat([sign(state, signer), state]).toString('base64url')
  if (text.length > MAX_TOKEN_CHARACTERS)
    throw new AdapterError(
      'ADP_QUERY',
      'The query is too long for a next link. No record was returned. Use a shorter $filter.',
      {
        at: { path: '$filter' },
      },
    )
  return text
}

/** Decodes a token. Throws `ADP_QUERY` if the token was altered, forged or issued to another owner, or if its content is invalid. */
export function decodeNextLink(text: string, signer: TokenSigner): NextLink {
  const bytes = text.length > MAX_TOKEN_CHARACTERS ? Buffer.alloc(0) : Buffer.from(text, 'base64url')
  const signature = bytes.subarray(0, SIGNATURE_BYTES)
  const state = bytes.subarray(SIGNATURE_BYTES)
  // Base64 text has unused bits at its end, so several texts stand for the same bytes. Only the text that was issued is valid.
  const whole = signature.length === SIGNATURE_BYTES && bytes.toString('base64url') === text
  if (!whole || !timingSafeEqual(signature, sign(state, signer))) throw invalidNextLink()
  const [query, rest, window, link, given] = readState(state)
  if (typeof query !== 'string' || !isCount(window)) throw invalidNextLink()
  if (typeof given !== 'string' || !GIVEN.test(given)) throw invalidNextLink()
  if (rest !== null && !isCount(rest)) throw invalidNextLink()
  if (link !== null && !(typeof link === 'string' && QUERY.test(link))) throw invalidNextLink()
  return { query, rest: rest ?? undefined, window, link: link ?? undefined, given }
}

function readState(state: Buffer): readonly unknown[] {
  try {
    const json = inflateRawSync(state, { maxOutputLength: MAX_STATE_BYTES }).toString()
    const values: unknown = JSON.parse(json)
    return Array.isArray(values) ? (values as unknown[]) : []
  } catch {
    throw invalidNextLink()
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function sign(state: Buffer, { secret, owner }: TokenSigner): Buffer {
  const key = createHmac('sha256', secret).update('markbridge next link ').update(owner).digest()
  return createHmac('sha256', key).update(state).digest().subarray(0, SIGNATURE_BYTES)
}

function invalidNextLink(): AdapterError {
  return new AdapterError(
    'ADP_QUERY',
    'The next link was altered or was not issued to this client. Nothing was read. Read again from the first page.',
    {
      at: { path: '$skiptoken' },
    },
  )
}
