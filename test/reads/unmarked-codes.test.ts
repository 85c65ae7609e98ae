import { describe, expect, it } from 'vitest'

import type { ReadSession } from '../../src/reads/read-upstream.ts'
import { openCallBudget } from '../../src/upstream/index.ts'
import { type CodeClient, createUnmarkedCodes } from '../../src/reads/unmarked-codes.ts'
import { soleQueue } from '../../src/upstream/index.ts'
import { createManualClock } from '../support/manual-clock.ts'

const ids = ['aaaaaaaa-0000-4000-8000-000000000001', 'aaaaaaaa-0000-4000-8000-000000000002']
const given = 'bbbbbbbb-0000-4000-8000-000000000001'

const reads = {
  needsRecordedBy: true,
  unmarkedCodes: [given],
  histories: false,
} as const
const clientOf = (credentialsHash: string, unmarkedLetters: string[], id = 'acme'): CodeClient => ({
  partner: { id, unmarkedLetters, reads },
  identity: { credentialsHash },
})

/** Opens a session with a V3 whose code lookup has two pages. Each page has one code with its own id, and one row that is not a code. */
function openSession() {
  const clock = createManualClock()
  const { signal } = new AbortController()
  const queries: string[] = []
  const session: ReadSession = {
    reader: {
      get: (_resource, query) => {
        queries.push(query)
        const isFirst = query.startsWith('$filter')
        const row = { ExternalID: ids[isFirst ? 0 : 1], LookupType: 'AttendanceCode', Code: '-' }
        const link = isFirst ? { '@odata.nextLink': 'http://x/y?$skiptoken=1' } : {}
        return Promise.resolve({ kind: 'read', json: { value: [row, 5], ...link } })
      },
      held: () => 0,
      close: () => Promise.resolve(),
    },
    queueKey: soleQueue,
    credentials: { authorization: 'bearer t', subscriptionKey: 'k' },
    renew: undefined,
    budget: openCallBudget({
      rateLimit: undefined,
      queueKey: soleQueue,
      priority: 'read',
      budgetMs: 1_000_000_000,
      clock,
      signal: () => signal,
    }),
    signal,
    pages: 3,
  }
  return { clock, session, queries }
}

const silent = { unmarkedCodesUnknown: () => undefined }

describe('createUnmarkedCodes', () => {
  it('reads all pages of the code lookup, and caches the ids for ten minutes for each client', async () => {
    const { clock, session, queries } = openSession()
    const codes = createUnmarkedCodes(clock, silent)
    const client = clientOf('one', ['-'])
    expect(codes.knownRules(client)).toBeUndefined()
    expect((await codes.rulesFor(session, client)).unmarkedCodes).toEqual([given, ...ids])
    expect([queries.length, session.pages]).toEqual([2, 3])
    expect(codes.knownRules(client)?.unmarkedCodes).toEqual([given, ...ids])
    await clock.pass(599_999)
    await codes.rulesFor(session, client)
    expect(queries.length).toBe(2)
    await codes.rulesFor(session, clientOf('two', ['-']))
    await codes.rulesFor(session, clientOf('one', ['-'], 'other'))
    expect(queries.length).toBe(6)
    await clock.pass(1)
    expect(codes.knownRules(client)).toBeUndefined()
    await codes.rulesFor(session, client)
    expect(queries.length).toBe(8)
  })

  it('shares one lookup between concurrent requests, and repeats the lookup if the client that started it disconnects', async () => {
    const { clock, session, queries } = openSession()
    const codes = createUnmarkedCodes(clock, silent)
    const client = clientOf('one', ['-'])
    const all = await Promise.all([1, 2, 3].map(() => codes.rulesFor(session, client)))
    expect(all.map(({ unmarkedCodes }) => unmarkedCodes.length)).toEqual([3, 3, 3])
    expect(queries.length).toBe(2)
    await clock.pass(600_000)
    const gone: ReadSession = {
      ...session,
      reader: { ...session.reader, get: () => Promise.reject(new DOMException('gone', 'AbortError')) },
    }
    const [first, second] = await Promise.allSettled([
      codes.rulesFor(gone, client),
      codes.rulesFor(session, client),
    ])
    expect([first.status, second.status]).toEqual(['rejected', 'fulfilled'])
    expect(queries.length).toBe(4)
  })

  it('does not call V3 if the configuration names only ids of codes', async () => {
    const { clock, session, queries } = openSession()
    const client = clientOf('one', [])
    expect((await createUnmarkedCodes(clock, silent).rulesFor(session, client)).unmarkedCodes).toEqual([
      given,
    ])
    expect(queries).toEqual([])
  })
})
