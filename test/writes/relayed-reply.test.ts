import { brotliCompressSync, gzipSync } from 'node:zlib'

import { describe, expect, it } from 'vitest'

import { createSlicing } from '../../src/http/slices.ts'
import { decodeStoredReply, outcomesOf, type RelayEnd } from '../../src/writes/relayed-reply.ts'

const replyOf = (statuses: readonly number[]): Buffer =>
  Buffer.from(
    [
      ...statuses.map(
        (status) => `--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 ${status} X\r\n\r\n{"é":1}\r\n`,
      ),
      '--b--\r\n',
    ].join(''),
  )
const partOf = (json: string): string =>
  `--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 201 X\r\n\r\n${json}\r\n--b--\r\n`
/** A record that takes long to parse, because each of its many members has a different name. */
const MANY_MEMBERS = `{"ExternalID":"1",${Array.from({ length: 180_000 }, (_, n) => `"${n.toString(36)}":1`).join()}}`
const answered = (status: number, body: Buffer | undefined, fields: string[] = []): RelayEnd => ({
  kind: 'answered',
  reply: {
    status,
    reason: 'Fine',
    fields: ['Content-Type', 'multipart/mixed; boundary=b', ...fields],
    body,
  },
})
const reading = { slices: createSlicing().open() }
const statesOf = async (end: RelayEnd, each: number | undefined, kind: 'batch' | 'record' = 'batch') =>
  (await outcomesOf(end, kind, each, reading)).map(({ state, retry }) =>
    retry === undefined ? state : `${state} ${retry}`,
  )

/** Returns the processor time of this thread in milliseconds, which excludes other work on the machine. */
function spentMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

describe('outcomesOf, for a request to V2', () => {
  it.each([
    [
      'a reply with a part for each record',
      answered(200, replyOf([201, 400, 504, 204])),
      4,
      ['confirmed', 'refused', 'unknown', 'confirmed'],
    ],
    [
      'a compressed reply',
      answered(200, gzipSync(replyOf([201])), ['Content-Encoding', 'gzip']),
      1,
      ['confirmed'],
    ],
    ['broken compression', answered(200, Buffer.from('x'), ['Content-Encoding', 'gzip']), 1, ['unknown']],
    ['an unknown encoding', answered(200, replyOf([201]), ['Content-Encoding', 'zz']), 1, ['unknown']],
    ['a reply with too few parts', answered(200, replyOf([201])), 2, ['unknown', 'unknown']],
    ['a single 200 without parts', answered(200, Buffer.alloc(0)), 1, ['unknown']],
    ['a reply that is too large', answered(200, undefined), 2, ['unknown resend', 'unknown resend']],
    [
      'a batch that V2 refused as a whole',
      answered(401, Buffer.from('{}')),
      2,
      ['notApplied resend', 'notApplied resend'],
    ],
    ['a 503 for the whole batch', answered(503, Buffer.from('{}')), 1, ['unknown resend']],
    ['a redirect', answered(302, Buffer.alloc(0)), 1, ['unknown resend']],
    ['a reply that was lost', { kind: 'lost' } as const, 2, ['unknown resend', 'unknown resend']],
    ['a request that was not sent', { kind: 'notSent' } as const, 1, ['notApplied resend']],
    [
      'a request that the journal stores as a single record',
      answered(200, replyOf([400])),
      undefined,
      ['confirmed'],
    ],
  ])('returns the states $3 for %s', async (_what, end, each, states) => {
    expect(await statesOf(end, each)).toEqual(states)
  })

  it.each([
    ['many parts', gzipSync(replyOf(Array<number>(20_000).fill(201))), 'gzip', 20_000, 'confirmed'],
    ['100 MB of zeros', brotliCompressSync(Buffer.alloc(100_000_000)), 'br', 1, 'unknown'],
    ['lines that resemble delimiters', gzipSync('\n--bx'.repeat(6_000_000)), 'gzip', 1, 'unknown'],
    ['lines that end like delimiters', gzipSync('x--\n'.repeat(8_000_000)), 'gzip', 1, 'unknown'],
    ['a part of 8 MiB', gzipSync(partOf(`{${'"a":1,'.repeat(1_400_000)}}`)), 'gzip', 1, 'unknown'],
    ['a part with 180,000 members', gzipSync(partOf(MANY_MEMBERS)), 'gzip', 1, 'confirmed'],
  ])(
    'reads a compressed reply with %s without ever blocking the event loop for 250 ms',
    async (_what, body, encoding, each, state) => {
      let [turns, longestMs] = [0, 0]
      const states = statesOf(answered(200, body, ['Content-Encoding', encoding]), each)
      const over = new AbortController()
      void states.then(() => over.abort())
      for (let before = spentMs(); !over.signal.aborted; before = spentMs()) {
        await new Promise((resolve) => setImmediate(resolve))
        turns += 1
        longestMs = Math.max(longestMs, spentMs() - before)
      }
      expect(new Set(await states)).toEqual(new Set([state]))
      expect(turns).toBeGreaterThan(3)
      expect(longestMs).toBeLessThan(250)
    },
  )

  it('derives the state of a single record from the status of its reply', async () => {
    expect(await statesOf(answered(201, Buffer.from('{}')), 1, 'record')).toEqual(['confirmed'])
    expect(await statesOf(answered(400, Buffer.from('[]')), 1, 'record')).toEqual(['refused'])
    const [first] = await outcomesOf(answered(201, Buffer.from('{}')), 'record', 1, reading)
    expect(first?.answer).toBeUndefined()
  })

  it('returns the mark from the reply of V2, unless the mark is too long or has too many members', async () => {
    const markOf = async (json: string) =>
      (await outcomesOf(answered(201, Buffer.from(json)), 'record', 1, reading)).map(({ state, mark }) => [
        state,
        mark?.externalId,
      ])
    expect(await markOf('{"ExternalID":"1"}')).toEqual([['confirmed', '1']])
    expect(await markOf(MANY_MEMBERS)).toEqual([['confirmed', undefined]])
    expect(await markOf(`{"ExternalID":"1"${' '.repeat(6_000_000)}}`)).toEqual([['confirmed', undefined]])
  })

  it('returns the whole reply, unchanged, with the first record', async () => {
    const body = Buffer.concat([replyOf([400]), Buffer.from([0, 255, 10, 13])])
    const end = answered(200, body)
    const [first, ...others] = await outcomesOf(end, 'batch', 3, reading)
    expect(others.map(({ answer }) => answer)).toEqual([undefined, undefined])
    expect(decodeStoredReply(first?.answer)).toEqual(end.kind === 'answered' ? end.reply : undefined)
  })
})
