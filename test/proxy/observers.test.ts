import { gzipSync } from 'node:zlib'

import { describe, expect, it } from 'vitest'

import type { WireReply } from '../../src/compare/wire-exchange.ts'
import { AdapterError } from '../../src/errors.ts'
import { createSlicing } from '../../src/http/slices.ts'
import type { Exchange, ExchangeObserver, Received, Replied } from '../../src/proxy/exchange.ts'
import type { ForwardOutcome } from '../../src/proxy/forwarder.ts'
import { beginTrial, countWrite } from '../../src/proxy/observers.ts'
import { noSeen, type SeenWrite } from '../../src/rollout/evidence/seen-writes.ts'
import { type CountedTrial, createTrialWindows } from '../../src/rollout/guards/trial-windows.ts'
import type { RequestKind } from '../../src/rollout/stage.ts'
import type { PartReply } from '../../src/v2/index.ts'
import type { Plan } from '../../src/writes/plan.ts'
import { incomingMessage } from '../support/incoming-message.ts'

/** Returns the trials that the guards count for a write that took a second and ended as `end` says. */
async function counted(
  kind: RequestKind,
  end: (trial: Partial<ExchangeObserver>) => void | Promise<void>,
  headers: Record<string, string> = {},
  isAccepted = true,
): Promise<readonly CountedTrial[]> {
  const windows = createTrialWindows()
  const guards = {
    begin: (write: Parameters<typeof windows.begin>[0]) => windows.begin(write),
    duties: [],
  }
  const entry = { side: 'v3', stage: 'canary', revision: 1 } as const
  const request = Object.assign(incomingMessage({ headers }), { complete: !('x-broken' in headers) })
  const client = { partner: { id: 'acme' } }
  const trial = beginTrial(
    { guards, nowMs: () => 1_000 },
    { request, kind, client, unit: 'a', entry, receivedMs: 0 } as unknown as Exchange,
    isAccepted,
  )
  await end(trial)
  trial.ended?.(undefined)
  return windows.close(10_000).flat()
}

/** Returns the outcome of the trial, or `not counted`. */
async function outcomeOf(
  kind: RequestKind,
  end: (trial: Partial<ExchangeObserver>) => void | Promise<void>,
): Promise<string> {
  return (await counted(kind, end))[0]?.outcome ?? 'not counted'
}

const tally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
const answer = { tally, queuedMs: 0, replayed: false, askedV3: true, outcomesShown: true }

const reading = { slices: createSlicing().open() }

const repliedOnV3 = ({ outcomesShown, ...answered }: typeof answer): Replied =>
  ({ kind: 'answered', planned: { plan: { outcomesShown } }, answered }) as unknown as Replied
const repliedOnV2 = (outcome: ForwardOutcome): Replied =>
  ({ kind: 'relayed', outcome, reading }) as unknown as Replied

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

describe('countWrite', () => {
  const plan = ['a', 'b', 'c'].map((key) => ({ key, record: { AttendanceCode: { ExternalID: 'N' } } }))
  const keysOf = (
    side: 'v2' | 'v3',
    statuses: readonly number[],
    replied: Replied | undefined,
  ): readonly unknown[] => {
    const found: unknown[] = []
    const seen = {
      ...noSeen,
      recordWrite: ({ records }: SeenWrite) => {
        for (const { key, hasOutcome } of records()) if (hasOutcome) found.push(key)
      },
    }
    const entry = { side, stage: 'canary', revision: 1 }
    const client = { partner: { id: 'acme' } }
    const write = { kind: 'batch', client, unit: 'a', entry, receivedMs: 0 } as unknown as Received
    const noted = countWrite({ seen }, write, () => true)
    noted.decoded?.({ records: plan } as unknown as Plan)
    statuses.forEach((status, position) => noted.settled?.(position, { status } as PartReply))
    if (replied !== undefined) void noted.replied?.(replied)
    noted.ended?.(undefined)
    return found
  }
  const onV3 = repliedOnV3(answer)
  const fromJournal = repliedOnV3({ ...answer, replayed: true })
  const lost = repliedOnV2({ kind: 'lost', error: error('ADP_V2_OUTCOME_UNKNOWN') })
  const notSent = repliedOnV2({ kind: 'notSent', error: error('ADP_UPSTREAM_UNAVAILABLE') })

  it.each<[string, 'v2' | 'v3', readonly number[], Replied | undefined, readonly string[]]>([
    ['confirmed and refused records', 'v3', [201, 204, 400], onV3, ['a', 'b', 'c']],
    ['no record that V3 failed to apply', 'v3', [503, 504, 409], onV3, []],
    ['only the records that V3 settled', 'v3', [201, 503], onV3, ['a']],
    ['no record if the write was refused as a whole', 'v3', [], undefined, []],
    ['no record of a resend that the journal answered at V3', 'v3', [201, 201, 400], fromJournal, []],
    ['no record of a resend that failed after parts from the journal', 'v3', [201, 201], undefined, []],
    ['every record that was sent to V2', 'v2', [], repliedOnV2(answered(200)), ['a', 'b', 'c']],
    ['every record that was sent to V2 if the reply was lost', 'v2', [], lost, ['a', 'b', 'c']],
    ['no record that was not sent to V2', 'v2', [], notSent, []],
    ['no record of a resend that the journal answered at V2', 'v2', [201], fromJournal, []],
    ['no record of a write that was refused before it reached V2', 'v2', [], undefined, []],
  ])('counts %s', (_, side, statuses, replied, keys) => {
    expect(keysOf(side, statuses, replied)).toEqual(keys)
  })
})

describe('beginTrial', () => {
  it.each<[string, Partial<typeof tally>, Partial<typeof answer>, string]>([
    ['that was accepted', { accepted: 3 }, {}, 'good'],
    ['with a refused record', { accepted: 2, refused: 1 }, {}, 'refused'],
    ['with a record that was not applied', { accepted: 2, notApplied: 1 }, {}, 'serverError'],
    ['with an unknown outcome', { accepted: 2, unknown: 1 }, {}, 'unknown'],
    ['that was answered from the journal', { unknown: 3 }, { askedV3: false }, 'not counted'],
    ['whose client does not see the outcomes', { refused: 3 }, { outcomesShown: false }, 'not counted'],
  ])('classifies a write to V3 %s', async (_, counts, given, bad) => {
    const one = { ...answer, ...given, tally: { ...tally, ...counts } }
    expect(await outcomeOf('batch', (trial) => trial.replied?.(repliedOnV3(one)))).toBe(bad)
  })

  it.each<[string, ForwardOutcome, string]>([
    ['that was accepted', answered(200, parts(201, 201)), 'good'],
    ['with a refused record', answered(200, parts(201, 400)), 'refused'],
    ['with a record that was not applied', answered(200, parts(503, 201)), 'serverError'],
    ['with a failed record', answered(200, parts(500, 400)), 'unknown'],
    ['with a compressed reply', answered(200, gzipSync(parts(400)), 'content-encoding', 'gzip'), 'refused'],
    [
      'with a reply in an unknown content encoding',
      answered(200, parts(400), 'Content-Encoding', 'zstd'),
      'not counted',
    ],
    ['with a reply without parts', answered(200, Buffer.from('--b--\r\n')), 'not counted'],
    ['with a reply that is too large to be copied', answered(200, undefined), 'not counted'],
    ['that was refused', answered(401), 'refused'],
    ['that was refused for its rate', answered(429), 'serverError'],
    ['that failed', answered(500), 'unknown'],
    ['whose reply was lost', { kind: 'lost', error: error('ADP_OUTCOME_UNKNOWN') }, 'unknown'],
    [
      'whose reply was broken off',
      { kind: 'brokenReply', status: 200, error: error('ADP_UPSTREAM_PROTOCOL') },
      'unknown',
    ],
    ['that was never sent', { kind: 'notSent', error: error('ADP_UPSTREAM_UNAVAILABLE') }, 'serverError'],
  ])('classifies a write to V2 %s', async (_, outcome, bad) => {
    expect(await outcomeOf('batch', (trial) => trial.replied?.(repliedOnV2(outcome)))).toBe(bad)
  })

  it('does not count a write to V2 if the client disconnects during the upload', async () => {
    const outcome = { kind: 'lost', error: error('ADP_OUTCOME_UNKNOWN') } as const
    const end = (trial: Partial<ExchangeObserver>) => trial.replied?.(repliedOnV2(outcome))
    expect(await counted('batch', end, { 'x-broken': 'yes' })).toEqual([])
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
  ])('classifies a write that failed as a whole with %s', async (code, bad) => {
    expect(await outcomeOf('record', (trial) => trial.ended?.(error(code)))).toBe(bad)
  })

  it('counts a trial once with its first result, and not at all without a result or if the client disconnects', async () => {
    const twice = (trial: Partial<ExchangeObserver>): void => {
      void trial.replied?.(repliedOnV3({ ...answer, tally: { ...tally, refused: 1 } }))
      trial.ended?.(error('ADP_INTERNAL'))
    }
    expect(await outcomeOf('batch', twice)).toBe('refused')
    expect(await outcomeOf('batch', () => undefined)).toBe('not counted')
    expect(
      await outcomeOf('batch', (trial) =>
        trial.ended?.(Object.assign(new Error('gone'), { name: 'AbortError' })),
      ),
    ).toBe('not counted')
    expect(await outcomeOf('readFilter', (trial) => trial.ended?.(error('ADP_INTERNAL')))).toBe('not counted')
  })

  it('does not read the reply to a later write of the same school in the same window', async () => {
    const unread: WireReply = {
      status: 200,
      reason: '',
      fields: [],
      get body() {
        return expect.fail('it was read')
      },
    }
    const guards = {
      begin: () => undefined,
      duties: [],
    }
    const entry = { side: 'v2', stage: 'canary', revision: 1 } as const
    const client = { partner: { id: 'acme' } }
    const write = { request: incomingMessage({}), kind: 'batch', client, unit: 'a', entry, receivedMs: 0 }
    const trial = beginTrial({ guards, nowMs: () => 0 }, write as unknown as Exchange, true)
    await trial.replied?.(repliedOnV2({ kind: 'answered', status: 200, reply: unread }))
  })

  it('begins no trial for a client that no service has accepted', async () => {
    expect(await counted('batch', (trial) => trial.ended?.(error('ADP_TOKEN')), {}, false)).toEqual([])
  })

  it('estimates the number of records of a trial from the length of the body', async () => {
    const lengths = [undefined, '600', '4000', '18000', '60000', '900000']
    const trials = lengths.map(async (length) => {
      const headers = length === undefined ? {} : { 'content-length': length }
      const [trial] = await counted('batch', (own) => own.replied?.(repliedOnV3(answer)), headers)
      return trial?.stratum
    })
    const strata = await Promise.all(trials)
    expect(strata).toEqual([0, 0, 1, 2, 3, 4])
  })
})
