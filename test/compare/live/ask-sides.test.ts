import { describe, expect, it } from 'vitest'

import { type AskOptions, createAskSides } from '../../../src/compare/live/ask-sides.ts'
import type { Client } from '../../../src/partners/partner.ts'
import { partner } from '../../partners/partner.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const client = {
  partner: { ...partner('acme', { any: true }), v2: new URL('http://127.0.0.1:9/') },
  client: { authorization: 'Bearer x', subscriptionKey: 'key' },
} as unknown as Client
const read = {
  client,
  kind: 'filter',
  path: '/V2/Attendance/AttendanceRecords',
  query: '',
  accept: '',
  prefer: '',
} as const

/** Asks V2, whose replies `get` returns. */
function asking(get: AskOptions['whole']['get']) {
  const clock = createManualClock()
  const stop = new AbortController()
  const options = {
    whole: { get },
    acquire: () => Promise.resolve(undefined),
    clock,
    stopped: stop.signal,
    onCall: () => undefined,
  } as unknown as AskOptions
  return { stop, answer: createAskSides(options).v2(read, 60_000) }
}

describe('createAskSides', () => {
  it('returns "unsent" for a call if the adapter stops before the answer', async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const { stop, answer } = asking(() => promise)
    stop.abort()
    resolve(undefined)
    expect(await answer).toEqual({ kind: 'unsent', reason: 'stopped' })
  })

  it('returns "unknown" for a call that the service does not answer', async () => {
    expect(await asking(() => Promise.resolve(undefined)).answer).toEqual({ kind: 'unknown' })
    expect(await asking(() => Promise.reject(new Error('gone'))).answer).toEqual({ kind: 'unknown' })
  })
})
