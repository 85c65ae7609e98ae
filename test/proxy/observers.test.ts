import { gzipSync } from 'node:zlib'

import { describe, expect, it } from 'vitest'

import type { WireReply } from '../../src/compare/wire-exchange.ts'
import { AdapterError } from '../../src/errors.ts'
import { createSlicing } from '../../src/http/slices.ts'
import type { Exchange, ExchangeObserver, Received, Replied } from '../../src/proxy/exchange.ts'
import type { ForwardOutcome } from '../../src/proxy/forwarder.ts'
import { beginTrial, noteWrite } from '../../src/proxy/observers.ts'
import { noSeen, type SeenWrite } from '../../src/rollout/evidence/seen-writes.ts'
import { type CountedTrial, createTrialWindows } from '../../src/rollout/guards/trial-windows.ts'
import type { RequestKind } from '../../src/rollout/stage.ts'
import type { PartReply } from '../../src/v2/index.ts'
import type { Plan } from '../../src/writes/plan.ts'
import { incomingMessage } from '../support/incoming-message.ts'

/** What the guards count of one write that took a second, of which nothing is known but what `end` says. */
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

/** The outcome, or that nothing was counted. */
async function outcomeOf(
  kind: RequestKind,
  end: (trial: Partial<ExchangeObserver>) => void | Promise<void>,
): Promise<string> {
  return (await counted(kind, end))[0]?.outcome ?? 'not counted'
}

const tally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
const answer = { tally, queuedMs: 0, askedV3: true, outcomesShown: true }

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

describe('a write that is counted for the advice', () => {
  const plan = ['a', 'b', 'c'].map((key) => ({ key, record: { AttendanceCode: { ExternalID: 'N' } } }))
  const keysOf = (side: 'v2' | 'v3', statuses: readonly number[]): readonly unknown[] => {
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
    const noted = noteWrite({ seen }, write, () => true)
    noted.decoded?.({ records: plan } as unknown as Plan)
    statuses.forEach((status, position) => noted.settled?.(position, { status } as PartReply))
    noted.ended?.(undefined)
    return found
  }

  it.each<[string, 'v2' | 'v3', readonly number[], readonly string[]]>([
    ['confirmed and refused records', 'v3', [201, 204, 400], ['a', 'b', 'c']],
    ['not what V3 failed at', 'v3', [503, 504, 409], []],
    ['what was settled before it failed', 'v3', [201, 503], ['a']],
    ['nothing of a write that was refused as a whole', 'v3', [], []],
    ['all that V2 was sent', 'v2', [], ['a', 'b', 'c']],
  ])('has %s', (_, side, statuses, keys) => {
    expect(keysOf(side, statuses)).toEqual(keys)
  })
})

describe('the trial of a write', () => {
  it.each<[string, Partial<typeof tally>, Partial<typeof answer>, string]>([
    ['accepted', { accepted: 3 }, {}, 'good'],
    ['with a refused record', { accepted: 2, refused: 1 }, {}, 'refused'],
    ['with a record that was not applied', { accepted: 2, notApplied: 1 }, {}, 'serverError'],
    ['with an unknown outcome', { accepted: 2, unknown: 1 }, {}, 'unknown'],
    ['that the journal alone has answered', { unknown: 3 }, { askedV3: false }, 'not counted'],
    ['whose outcomes its client does not see', { refused: 3 }, { outcomesShown: false }, 'not counted'],
  ])('on V3, %s', async (_, counts, given, bad) => {
    const one = { ...answer, ...given, tally: { ...tally, ...counts } }
    expect(await outcomeOf('batch', (trial) => trial.replied?.(repliedOnV3(one)))).toBe(bad)
  })

  it.each<[string, ForwardOutcome, string]>([
    ['accepted', answered(200, parts(201, 201)), 'good'],
    ['with a refused record', answered(200, parts(201, 400)), 'refused'],
    ['with a record that was not applied', answered(200, parts(503, 201)), 'serverError'],
    ['with a failed record', answered(200, parts(500, 400)), 'unknown'],
    ['compressed', answered(200, gzipSync(parts(400)), 'content-encoding', 'gzip'), 'refused'],
    ['in a coding that is not known', answered(200, parts(400), 'Content-Encoding', 'zstd'), 'not counted'],
    ['without parts', answered(200, Buffer.from('--b--\r\n')), 'not counted'],
    ['too large to be read', answered(200, undefined), 'not counted'],
    ['refused', answered(401), 'refused'],
    ['refused for its rate', answered(429), 'serverError'],
    ['failed', answered(500), 'unknown'],
    ['lost', { kind: 'lost', error: error('ADP_OUTCOME_UNKNOWN') }, 'unknown'],
    ['broken off', { kind: 'brokenReply', status: 200, error: error('ADP_UPSTREAM_PROTOCOL') }, 'unknown'],
    ['never sent', { kind: 'notSent', error: error('ADP_UPSTREAM_UNAVAILABLE') }, 'serverError'],
  ])('on V2, %s', async (_, outcome, bad) => {
    expect(await outcomeOf('batch', (trial) => trial.replied?.(repliedOnV2(outcome)))).toBe(bad)
  })

  it('does not count for V2 when its client left in the middle', async () => {
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
  ])('refused as a whole with %s', async (code, bad) => {
    expect(await outcomeOf('record', (trial) => trial.ended?.(error(code)))).toBe(bad)
  })

  it('counts once, with its first end, and not at all without one or for a client that left', async () => {
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

  it('of another write of its school in the window reads no reply', async () => {
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

  it('of a client that no service has accepted does not count', async () => {
    expect(await counted('batch', (trial) => trial.ended?.(error('ADP_TOKEN')), {}, false)).toEqual([])
  })

  it('classes writes by the length of their body', async () => {
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
