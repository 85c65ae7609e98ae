import { gzipSync } from 'node:zlib'

import { describe, expect, it } from 'vitest'

import type { WireReply } from '../../src/compare/wire-exchange.ts'
import { AdapterError } from '../../src/errors.ts'
import { createSlicing } from '../../src/http/slices.ts'
import { openExchange } from '../../src/proxy/after-exchange.ts'
import { createByteBudget } from '../../src/proxy/byte-budget.ts'
import type { Exchange, ExchangeResult, Received } from '../../src/proxy/exchange.ts'
import type { ForwardOutcome } from '../../src/proxy/forwarder.ts'
import { noSeen, type SeenWrite } from '../../src/rollout/evidence/seen-writes.ts'
import { noGuards } from '../../src/rollout/guards/live-guards.ts'
import { type CountedTrial, createTrialWindows } from '../../src/rollout/guards/trial-windows.ts'
import type { RequestKind, Side } from '../../src/rollout/stage.ts'
import type { PartReply } from '../../src/v2/index.ts'
import type { Plan } from '../../src/writes/plan.ts'
import { incomingMessage } from '../support/incoming-message.ts'

type Context = Parameters<typeof openExchange>[0]
type Ended = Partial<Omit<ExchangeResult, 'parts'>>

const byteBudget = createByteBudget(1_000_000)

/** Opens an exchange, lets `serveOnSide` fill in its result, and ends it after a second. `own` replaces members of the context. */
async function serve(
  own: Partial<Context>,
  received: Partial<Received>,
  serveOnSide: (exchange: Exchange) => void,
  isAccepted: () => boolean = () => true,
): Promise<void> {
  const context = {
    accepted: { queueKey: () => ({ partner: 'acme', owner: 'acme', isAccepted }) },
    comparison: { isWanted: () => false, onWrite: () => undefined },
    events: { batchAnswered: () => undefined },
    ...{ guards: noGuards, seen: noSeen, slicing: createSlicing(), byteBudget, nowMs: () => 1_000 },
    ...own,
  } as unknown as Context
  const client = { partner: { id: 'acme' } }
  const request = incomingMessage({})
  const { exchange, after } = openExchange(context, {
    ...{ request, client, unit: 'a', receivedMs: 0 },
    ...received,
  } as unknown as Received)
  serveOnSide(exchange)
  await after()
}

/** Returns the trials that the guards count for a write that took a second and ended with `ended`. */
async function counted(
  kind: RequestKind,
  ended: Ended,
  {
    headers = {},
    side = 'v3',
    isAccepted = true,
  }: { headers?: Record<string, string>; side?: Side; isAccepted?: boolean } = {},
): Promise<readonly CountedTrial[]> {
  const windows = createTrialWindows()
  const guards = {
    begin: (write: Parameters<typeof windows.begin>[0]) => windows.begin(write),
    duties: [],
  }
  const entry = { side, stage: 'canary', revision: 1 } as Received['entry']
  const request = Object.assign(incomingMessage({ headers }), { complete: !('x-broken' in headers) })
  await serve(
    { guards },
    { request, kind, side, entry },
    ({ result }) => void Object.assign(result, ended),
    () => isAccepted,
  )
  return windows.close(10_000).flat()
}

const outcomeOf = async (...write: Parameters<typeof counted>): Promise<string> =>
  (await counted(...write))[0]?.outcome ?? 'not counted'

const tally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
const answer = { tally, queuedMs: 0, replayed: false, askedV3: true, outcomesShown: true, batch: 1 }

const endedOnV3 = ({ outcomesShown, ...answered }: typeof answer): Ended => ({
  plan: { outcomesShown, records: [] } as unknown as Plan,
  outcome: { kind: 'answered', answered },
})
const endedOnV2 = (outcome: ForwardOutcome): Ended => ({
  outcome: { kind: 'relayed', body: undefined, outcome, endedMs: 1_000 },
})

const part = (status: number): string =>
  `--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 ${status} X\r\n\r\n{}\r\n`
const parts = (...statuses: number[]): Buffer => Buffer.from(`${statuses.map(part).join('')}--b--\r\n`)
const answered = (status: number, body?: Buffer, ...fields: string[]): ForwardOutcome => ({
  kind: 'answered',
  status,
  reply: {
    status,
    reason: '',
    fields: ['Content-Type', 'multipart/mixed; boundary=b', ...fields],
    body,
  },
})

const error = (code: ConstructorParameters<typeof AdapterError>[0]): AdapterError =>
  new AdapterError(code, 'A text.')

describe('openExchange for the advice', () => {
  const records = ['a', 'b', 'c'].map((key) => ({ key, record: { AttendanceCode: { ExternalID: 'N' } } }))
  const plan = { records } as unknown as Plan
  const keysOf = async (
    side: Side,
    statuses: readonly number[],
    ended: Ended,
  ): Promise<readonly unknown[]> => {
    const found: unknown[] = []
    const seen = {
      ...noSeen,
      recordWrite: ({ records: all }: SeenWrite) => {
        for (const { key, hasOutcome } of all()) if (hasOutcome) found.push(key)
      },
    }
    const entry = { side, stage: 'canary', revision: 1 } as Received['entry']
    await serve({ seen }, { kind: 'batch', side, entry }, ({ result }) => {
      statuses.forEach((status, position) => result.parts.set(position, { status } as PartReply))
      Object.assign(result, ended, { plan })
    })
    return found
  }
  const onV3 = endedOnV3(answer)
  const fromJournal = endedOnV3({ ...answer, replayed: true })
  const lost = endedOnV2({ kind: 'lost', error: error('ADP_V2_OUTCOME_UNKNOWN') })
  const notSent = endedOnV2({ kind: 'notSent', error: error('ADP_UPSTREAM_UNAVAILABLE') })

  it.each<[string, Side, readonly number[], Ended, readonly string[]]>([
    ['confirmed and refused records', 'v3', [201, 204, 400], onV3, ['a', 'b', 'c']],
    ['no record that V3 failed to apply', 'v3', [503, 504, 409], onV3, []],
    ['only the records that V3 settled', 'v3', [201, 503], onV3, ['a']],
    ['no record if the write was refused as a whole', 'v3', [], {}, []],
    ['no record of a resend that the journal answered at V3', 'v3', [201, 201, 400], fromJournal, []],
    ['no record of a resend that failed after parts from the journal', 'v3', [201, 201], {}, []],
    ['every record that was sent to V2', 'v2', [], endedOnV2(answered(200)), ['a', 'b', 'c']],
    ['every record that was sent to V2 if the reply was lost', 'v2', [], lost, ['a', 'b', 'c']],
    ['no record that was not sent to V2', 'v2', [], notSent, []],
    ['no record of a resend that the journal answered at V2', 'v2', [201], fromJournal, []],
    ['no record of a write that was refused before it reached V2', 'v2', [], {}, []],
  ])('counts %s', async (_, side, statuses, ended, keys) => {
    expect(await keysOf(side, statuses, ended)).toEqual(keys)
  })
})

describe('openExchange for the guards', () => {
  it.each<[string, string, Partial<typeof tally>, Partial<typeof answer>]>([
    ['that was accepted', 'good', { accepted: 3 }, {}],
    ['with a refused record', 'refused', { accepted: 2, refused: 1 }, {}],
    ['with a record that was not applied', 'serverError', { accepted: 2, notApplied: 1 }, {}],
    ['with an unknown outcome', 'unknown', { accepted: 2, unknown: 1 }, {}],
    ['that was answered from the journal', 'not counted', { unknown: 3 }, { askedV3: false }],
    ['whose client does not see the outcomes', 'not counted', { refused: 3 }, { outcomesShown: false }],
  ])('classifies a write to V3 %s as %s', async (_, bad, counts, given) => {
    const one = { ...answer, ...given, tally: { ...tally, ...counts } }
    expect(await outcomeOf('batch', endedOnV3(one))).toBe(bad)
  })

  it.each<[string, string, ForwardOutcome]>([
    ['that was accepted', 'good', answered(200, parts(201, 201))],
    ['with a refused record', 'refused', answered(200, parts(201, 400))],
    ['with a record that was not applied', 'serverError', answered(200, parts(503, 201))],
    ['with a failed record', 'unknown', answered(200, parts(500, 400))],
    ['with a compressed reply', 'refused', answered(200, gzipSync(parts(400)), 'content-encoding', 'gzip')],
    [
      'with a reply in an unknown content encoding',
      'not counted',
      answered(200, parts(400), 'Content-Encoding', 'zstd'),
    ],
    ['with a reply without parts', 'not counted', answered(200, Buffer.from('--b--\r\n'))],
    ['with a reply that is too large to be copied', 'not counted', answered(200, undefined)],
    ['that was refused', 'refused', answered(401)],
    ['that was refused for its rate', 'serverError', answered(429)],
    ['that failed', 'unknown', answered(500)],
    ['whose reply was lost', 'unknown', { kind: 'lost', error: error('ADP_OUTCOME_UNKNOWN') }],
    [
      'whose reply was broken off',
      'unknown',
      { kind: 'brokenReply', status: 200, error: error('ADP_UPSTREAM_PROTOCOL') },
    ],
    ['that was never sent', 'serverError', { kind: 'notSent', error: error('ADP_UPSTREAM_UNAVAILABLE') }],
  ])('classifies a write to V2 %s as %s', async (_, bad, outcome) => {
    expect(await outcomeOf('batch', endedOnV2(outcome), { side: 'v2' })).toBe(bad)
  })

  it('does not count a write to V2 if the client disconnects during the upload', async () => {
    const outcome = { kind: 'lost', error: error('ADP_OUTCOME_UNKNOWN') } as const
    const how = { headers: { 'x-broken': 'yes' }, side: 'v2' } as const
    expect(await counted('batch', endedOnV2(outcome), how)).toEqual([])
  })

  it.each<[ConstructorParameters<typeof AdapterError>[0], string]>([
    ['ADP_OUTCOME_UNKNOWN', 'unknown'],
    ['ADP_UPSTREAM_UNAVAILABLE', 'serverError'],
    ['ADP_BUDGET_EXCEEDED', 'serverError'],
    ['ADP_INTERNAL', 'serverError'],
    ['ADP_BOUNDARY', 'refused'],
    ['ADP_TOKEN', 'refused'],
    ['ADP_SLOW_CLIENT', 'not counted'],
    ['ADP_JOURNAL_UNAVAILABLE', 'not counted'],
    ['ADP_OVERLOADED', 'not counted'],
  ])('classifies a write that failed as a whole with %s as %s', async (code, bad) => {
    expect(await outcomeOf('record', { cause: error(code) })).toBe(bad)
  })

  it('counts a write only if its outcome is known and its client stays connected', async () => {
    const refused = endedOnV3({ ...answer, tally: { ...tally, refused: 1 } })
    expect(await outcomeOf('batch', { ...refused, cause: error('ADP_INTERNAL') })).toBe('refused')
    expect(await outcomeOf('batch', {})).toBe('not counted')
    const cause = Object.assign(new Error('gone'), { name: 'AbortError' })
    expect(await outcomeOf('batch', { cause })).toBe('not counted')
    expect(await outcomeOf('readFilter', { cause: error('ADP_INTERNAL') })).toBe('not counted')
  })

  it('does not read the reply to a write that begins no trial', async () => {
    const unread: WireReply = {
      status: 200,
      reason: '',
      fields: [],
      get body() {
        return expect.fail('it was read')
      },
    }
    const entry = { side: 'v2', stage: 'canary', revision: 1 } as Received['entry']
    const ended = endedOnV2({ kind: 'answered', status: 200, reply: unread })
    await serve({}, { kind: 'batch', side: 'v2', entry }, ({ result }) => void Object.assign(result, ended))
  })

  it('begins no trial for a client that no service has accepted', async () => {
    expect(await counted('batch', { cause: error('ADP_TOKEN') }, { isAccepted: false })).toEqual([])
  })

  it('estimates the number of records of a trial from the length of the body', async () => {
    const lengths = [undefined, '600', '4000', '18000', '60000', '900000']
    const trials = lengths.map(async (length) => {
      const headers = length === undefined ? {} : { 'content-length': length }
      const [trial] = await counted('batch', endedOnV3(answer), { headers })
      return trial?.stratum
    })
    const strata = await Promise.all(trials)
    expect(strata).toEqual([0, 0, 1, 2, 3, 4])
  })
})

describe('openExchange for the comparison', () => {
  it('reports the learners and events of an unsampled write exactly once, even if the write fails', async () => {
    const reported: (readonly unknown[])[] = []
    const comparison = {
      ...{ isWanted: () => false, offer: () => expect.fail('it was offered'), onThrottled: () => undefined },
      onWrite: (_partner: unknown, _stage: unknown, keys: () => readonly unknown[]) =>
        void reported.push(keys()),
    }
    const entry = { side: 'v3', stage: 'v3', revision: 1 } as Received['entry']
    const plan = { records: [{ key: 'a' }, { key: '' }] } as unknown as Plan
    const ended = { plan, cause: error('ADP_OUTCOME_UNKNOWN') }
    const fill = ({ result }: Exchange): void => void Object.assign(result, ended)
    await serve({ comparison }, { kind: 'batch', side: 'v3', entry }, fill)
    expect(reported).toEqual([['a', undefined]])
  })
})
