import { AdapterError } from '../../errors.ts'
import type { Slices } from '../../http/slices.ts'
import type { Client, Partner } from '../../partners/partner.ts'
import { inspectBatch, noBatchLimits } from '../../v2/index.ts'
import type { WriteRequest } from '../../writes/index.ts'
import { type OwnRules, describeMark, diffMarks } from '../diff/index.ts'
import { compareReply, createLatestMarks } from '../live/index.ts'
import { type ComparedSide, readSidePage } from '../run/index.ts'
import { createTally, type Tally } from '../tally.ts'
import type { Exchange } from './exchange.ts'
import { headerOf } from './exchange.ts'
import { type ReadRecording, readRecording } from './read-recordings.ts'
import { RECORDED_HOST } from './to-files.ts'

export interface CompareRecordingsOptions {
  readonly partner: Partner
  /** Opens recordings that are encrypted. */
  readonly key: Uint8Array | undefined
  readonly rules: OwnRules | undefined
  readonly open: () => Slices
  /** V3 through the adapter, for reads that were recorded; undefined: no service is asked, and they do not count. */
  readonly v3: ComparedSide | undefined
  readonly signal: AbortSignal
  readonly onDone: () => void
}

/** The counts of a run over recordings. */
export interface RecordingsResult {
  readonly tally: Tally
  /** First and last day of the records, `YYYY-MM-DD`; empty where nothing was compared. */
  readonly from: string
  readonly to: string
  /** False: it was stopped. */
  readonly complete: boolean
  /** Recorded reads that no service was asked for. */
  readonly reads: number
}

/** A client that was recorded without anything of its own. */
const NO_CREDENTIALS = { subscriptionKey: '', authorization: '' }

/**
 * Compares recordings in their order. A write is decoded and translated, and the reply that the adapter would have built is set against
 * V2's: nothing is posted, and no service is needed. A read is set against what V3 answers now, where `v3` is given. Errors: those of
 * `readRecording`; `ADP_USAGE` for pseudonyms with `v3`, which no service knows.
 */
export async function compareRecordings(
  folders: readonly string[],
  options: CompareRecordingsOptions,
): Promise<RecordingsResult> {
  const counted = countDays(createTally(options.rules === undefined ? [] : options.rules.all))
  const { tally } = counted
  const latest = createLatestMarks()
  let [reads, done] = [0, 0]
  for (const folder of folders) {
    if (options.signal.aborted) break
    const recording = await readRecording(folder, options.key)
    const { exchange } = recording
    if (exchange.kind === 'batch' || exchange.kind === 'record')
      await compareWrite(exchange, exchange.kind, options, tally, latest)
    else if (options.v3 === undefined) reads += 1
    else await compareRead(recording, options.v3, options, tally)
    done += 1
    options.onDone()
  }
  return { tally, ...counted.days(), complete: done === folders.length, reads }
}

/** A tally that knows the first and the last day of its records. */
function countDays(tally: Tally): {
  readonly tally: Tally
  readonly days: () => { readonly from: string; readonly to: string }
} {
  let [from, to] = ['', '']
  const add: Tally['add'] = (comparison, groups) => {
    const { day = '' } = groups
    if (day !== '' && (from === '' || day < from)) from = day
    if (day > to) to = day
    tally.add(comparison, groups)
  }
  return { tally: { ...tally, add }, days: () => ({ from, to }) }
}

const dayOf = ({ receivedMs }: Exchange): string => new Date(receivedMs).toISOString().slice(0, 10)

async function compareWrite(
  exchange: Exchange,
  kind: 'batch' | 'record',
  { partner, rules, open }: CompareRecordingsOptions,
  tally: Tally,
  latest: ReturnType<typeof createLatestMarks>,
): Promise<void> {
  const { body, reply, receivedMs, durationMs, contentType } = exchange
  const keys = kind === 'batch' ? keysOf(body, contentType) : [undefined]
  const result = await compareReply(
    {
      kind,
      served: 'v2',
      client: toClient(partner),
      stage: 'shadow',
      revision: 0,
      unit: '',
      receivedMs,
      repliedMs: receivedMs + durationMs,
      request: toWriteRequest(exchange, kind, partner),
      body,
      keys,
      reply: { status: reply.status, fields: reply.headers.flat(), body: reply.body },
    },
    latest.wrote(partner.id, keys),
    { limits: () => noBatchLimits, open, rulesOf: () => rules, maxReplyBytes: Infinity },
  )
  if (result.kind === 'skipped') {
    tally.skip(Math.max(1, keys.length))
    return
  }
  for (const record of result.records) {
    tally.add(record, { kind, day: record.day ?? dayOf(exchange), codeClass: record.codeClass })
  }
}

/** Learner and event of each record, as far as it can be read. */
function keysOf(body: Buffer, contentType: string | undefined): readonly (string | undefined)[] {
  const parts = inspectBatch(body, contentType, { limits: noBatchLimits }).batch?.parts ?? []
  return parts.map(({ record }) => record && `${record.Learner} ${record.AttendableEvent}`.toLowerCase())
}

const toClient = (partner: Partner): Client => ({
  partner,
  client: NO_CREDENTIALS,
  owner: '',
  identity: { owner: '', credentialsHash: '', isNamed: false, school: undefined, expiresMs: undefined },
})

/** The request as the adapter would have taken it, under its own address. */
function toWriteRequest(
  { contentType, accept = '', prefer = '', target }: Exchange,
  kind: 'batch' | 'record',
  partner: Partner,
): WriteRequest {
  const isGeneric = /\bmultipart\/mixed\b/i.test(accept)
  const layout = partner.layout === 'auto' ? (isGeneric ? 'nested' : 'flat') : partner.layout
  const root = target.slice(0, Math.max(0, target.search(/\/v2\//i)))
  return {
    kind,
    contentType,
    serviceHosts: kind === 'record' ? undefined : partner.serviceHosts,
    context: `http://${RECORDED_HOST}${root}/V2/Attendance/$metadata#AttendanceRecords/$entity`,
    layout: kind === 'record' ? 'flat' : layout,
    dataEnvelope: partner.dataEnvelope,
    msgtypeResponse: partner.msgtypeResponse,
    errorMessages: partner.errorMessages,
    prefer: kind === 'record' ? prefer : '',
    accept: kind === 'record' ? accept : '',
  }
}

/** Sets the rows of a recorded answer against those that V3 gives now. */
async function compareRead(
  { exchange, pseudonyms, name }: ReadRecording,
  v3: ComparedSide,
  { rules, signal }: CompareRecordingsOptions,
  tally: Tally,
): Promise<void> {
  if (pseudonyms)
    throw new AdapterError('ADP_USAGE', `${name} has pseudonyms, which no service knows: leave --v3 out.`)
  const query = queryOf(exchange)
  const own = query === undefined ? undefined : rowsOf(exchange)
  if (query === undefined || own === undefined) {
    tally.skip(1)
    return
  }
  const page = await v3.page(query, signal)
  // The first pages of two orders have other rows.
  if (page.next !== undefined) {
    tally.skip(Math.max(1, own.length))
    return
  }
  const order = /orderby/i.test(query) ? 'asked' : 'unasked'
  const diffs = diffMarks(own, page.rows, { order, ...(rules === undefined ? {} : { rules }) })
  for (const diff of diffs) {
    const { day, codeClass } = describeMark(diff)
    tally.add(diff.comparison, { kind: 'readFilter', day: day ?? dayOf(exchange), codeClass })
  }
}

/** The query of a read whose answer is one whole list of marks; undefined: it is another one. */
function queryOf({ kind, target }: Exchange): string | undefined {
  const [path = '', query = ''] = target.split('?', 2)
  if (kind !== 'readFilter' || /\$count\/?$/i.test(path)) return undefined
  return /(?:^|&)(?:\$|%24)(?:top|skip|skiptoken|count)=/i.test(query) ? undefined : query
}

/** Undefined: the answer is no page, or not all of the list. */
function rowsOf({ reply }: Exchange): readonly object[] | undefined {
  if (reply.status !== 200 || !/json/i.test(headerOf(reply.headers, 'content-type') ?? '')) return undefined
  try {
    const { rows, next } = readSidePage(JSON.parse(reply.body.toString()))
    return next === undefined ? rows : undefined
  } catch {
    return undefined
  }
}
