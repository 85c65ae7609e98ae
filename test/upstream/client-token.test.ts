import { describe, expect, it } from 'vitest'

import { createTokenSource, type TokenSource } from '../../src/upstream/client-token.ts'
import { createManualClock, type ManualClock } from '../support/manual-clock.ts'

interface Endpoint {
  readonly clock: ManualClock
  readonly source: TokenSource
  /** Returns the number of requests so far. */
  calls(): number
  down: boolean
}

/** Starts an endpoint whose tokens are numbered, are valid for 1000 s and take 1 s to arrive. */
function start(): Endpoint {
  const clock = createManualClock()
  let calls = 0
  const endpoint: Endpoint = {
    clock,
    calls: () => calls,
    down: false,
    source: createTokenSource({
      nowMs: () => clock.nowMs(),
      fetch: async () => {
        calls += 1
        const token = `token ${calls}`
        await new Promise<void>((resolve) => clock.after(1_000, resolve))
        if (endpoint.down) throw new Error('down')
        return { token, lifetimeMs: 1_000_000 }
      },
    }),
  }
  return endpoint
}

async function later<Value>(endpoint: Endpoint, asked: Promise<Value>): Promise<Value> {
  const caught = asked.catch((error: unknown) => error)
  await endpoint.clock.pass(1_000)
  await caught
  return asked
}

describe('createTokenSource', () => {
  it('requests the first token once for all callers, and keeps the token', async () => {
    const endpoint = start()
    const { source, clock } = endpoint
    expect(await later(endpoint, Promise.all([source.token(), source.token()]))).toEqual([
      'token 1',
      'token 1',
    ])
    await clock.pass(700_000)
    expect([await source.token(), endpoint.calls()]).toEqual(['token 1', 1])
  })

  it('replaces the token after 80 % of its lifetime, and delays no caller', async () => {
    const endpoint = start()
    const { source, clock } = endpoint
    await later(endpoint, source.token())
    await clock.pass(800_000)
    expect([await source.token(), await source.token(), endpoint.calls()]).toEqual(['token 1', 'token 1', 2])
    await clock.pass(1_000)
    expect([await source.token(), endpoint.calls()]).toEqual(['token 2', 2])
  })

  it('uses the old token until it expires while the token endpoint fails, and then reports the failure', async () => {
    const endpoint = start()
    const { source, clock } = endpoint
    await later(endpoint, source.token())
    endpoint.down = true
    await clock.pass(850_000)
    expect(await source.token()).toBe('token 1')
    await clock.pass(2_000)
    expect([await source.token(), endpoint.calls()]).toEqual(['token 1', 2])
    await clock.pass(5_000)
    expect([await source.token(), endpoint.calls()]).toEqual(['token 1', 3])
    await clock.pass(200_000)
    await expect(later(endpoint, source.token())).rejects.toThrow('down')
    endpoint.down = false
    expect(await later(endpoint, source.token())).toBe('token 5')
  })

  it('renews a rejected token once for all callers', async () => {
    const endpoint = start()
    const { source } = endpoint
    await later(endpoint, source.token())
    const both = Promise.all([source.renew('token 1'), source.renew('token 1')])
    expect(await later(endpoint, both)).toEqual(['token 2', 'token 2'])
    expect([await source.renew('token 1'), endpoint.calls()]).toEqual(['token 2', 2])
  })
})
