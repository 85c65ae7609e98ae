import { AdapterError } from '../../errors.ts'
import type { Client, Partner } from '../../partners/partner.ts'
import { inspectBatch, noBatchLimits } from '../../v2/index.ts'
import type { OwnRules } from '../diff/index.ts'
import { compareReply, createLatestMarks, isObject, markKey, readBody } from '../live/index.ts'
import type { AskAdapter } from '../run/index.ts'
import { createTally, type Tally } from '../tally.ts'
import { compareMarks, createWrittenMarks, type WrittenMarks } from './compare-marks.ts'
import { compareRead } from './compare-read.ts'
import { type Exchange, isGeneric } from './exchange.ts'
import { readRecording } from './read-recordings.ts'
import { toWriteRequest } from './to-write-request.ts'

export interface CompareRecordingsOptions {
  readonly partner: Partner
  /** Opens recordings that are encrypted. */
  readonly key: Uint8Array | undefined
  readonly rules: OwnRules | undefined
  /** V3 through the adapter, for recorded reads and the marks of recorded writes; undefined: no service is asked, and they do not count. */
  readonly v3: AskAdapter | undefined
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
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
  /** Exchanges that V3 served: their replies are the adapter's own. */
  readonly servedByV3: number
}

/** A client that was recorded without anything of its own. */
const NO_CREDENTIALS = { subscriptionKey: '', authorization: '' }

/**
 * Compares recordings of exchanges that V2 served, in their order. A write is decoded and translated, and the reply that the adapter would have
 * built is set against V2's: nothing is posted, and no service is needed. Where `v3` is given, a read is set against what V3 answers now, and at
 * the end V3 is read for the last mark that V2 accepted of each learner and event. Errors: those of `readRecording`; `ADP_USAGE` for
 * pseudonyms with `v3`, which no service knows.
 */
export async function compareRecordings(
  folders: readonly string[],
  options: CompareRecordingsOptions,
): Promise<RecordingsResult> {
  const { v3, signal } = options
  const counted = countDays(createTally(options.rules === undefined ? [] : options.rules.all))
  const { tally } = counted
  const writes = { latest: createLatestMarks(), marks: createWrittenMarks() }
  let [reads, servedByV3, done] = [0, 0, 0]
  for (const folder of folders) {
    if (signal.aborted) break
    const { exchange, pseudonyms, name } = await readRecording(folder, options.key)
    const { kind } = exchange
    if (v3 !== undefined && pseudonyms)
      throw new AdapterError('ADP_USAGE', `${name} has pseudonyms, which no service knows: leave --v3 out.`)
    if (exchange.served === 'v3') servedByV3 += 1
    else if (kind === 'batch' || kind === 'record') await compareWrite(exchange, kind, options, tally, writes)
    else if (v3 === undefined) reads += 1
    else await compareRead(exchange, kind, { ...options, v3 }, tally)
    done += 1
    options.onDone()
  }
  if (v3 !== undefined && !signal.aborted) await compareMarks(writes.marks, { ...options, v3 }, tally)
  const complete = done === folders.length && !signal.aborted
  return { tally, ...counted.days(), complete, reads, servedByV3 }
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

interface Writes {
  readonly latest: ReturnType<typeof createLatestMarks>
  readonly marks: WrittenMarks
}

async function compareWrite(
  exchange: Exchange,
  kind: 'batch' | 'record',
  { partner, rules }: CompareRecordingsOptions,
  tally: Tally,
  { latest, marks }: Writes,
): Promise<void> {
  const { body, reply, receivedMs, durationMs, contentType } = exchange
  const keys = kind === 'batch' ? keysOf(body, contentType) : [keyOf(body)]
  const result = await compareReply(
    {
      kind,
      served: 'v2',
      path: exchange.target,
      client: toClient(partner),
      stage: 'shadow',
      revision: 0,
      unit: '',
      receivedMs,
      repliedMs: receivedMs + durationMs,
      request: toWriteRequest(exchange, kind, partner),
      isGeneric: isGeneric(exchange),
      body,
      keys,
      reply: { status: reply.status, fields: reply.headers.flat(), body: reply.body },
    },
    latest.placesOf(partner.id, keys),
    { limits: noBatchLimits, rules, maxReplyBytes: Infinity },
  )
  marks.wrote(keys, result.kind === 'skipped' ? [] : result.accepted)
  if (result.kind === 'skipped') {
    tally.skip(Math.max(1, keys.length))
    return
  }
  const day = new Date(receivedMs).toISOString().slice(0, 10)
  for (const record of result.records)
    tally.add(record, { kind, day: record.day ?? day, codeClass: record.codeClass })
}

/** Learner and event of each record, as far as it can be read. */
function keysOf(body: Buffer, contentType: string | undefined): readonly (string | undefined)[] {
  const parts = inspectBatch(body, contentType, { limits: noBatchLimits }).batch?.parts ?? []
  return parts.map(({ record }) => record && `${record.Learner} ${record.AttendableEvent}`.toLowerCase())
}

function keyOf(body: Buffer): string | undefined {
  const record = readBody(body.toString('utf8'))
  return isObject(record) ? markKey(record) : undefined
}

const toClient = (partner: Partner): Client => ({
  partner,
  client: NO_CREDENTIALS,
  owner: '',
  identity: { owner: '', credentialsHash: '', isNamed: false, school: undefined, expiresMs: undefined },
})
