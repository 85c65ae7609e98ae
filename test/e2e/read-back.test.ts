import { describe, expect, it } from 'vitest'

import { startSandbox } from '../sandbox/start-sandbox.ts'
import { created, failuresOf, postBatch, readBatchReply } from '../support/batch-request.ts'
import { readSamples } from '../support/read-samples.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'
import { sandboxRegister } from './support/sandbox-register.ts'

const post = { method: 'POST', path: 'AttendanceRecords' }
const read = { method: 'GET', path: 'AttendanceRecords' }

describe('a write whose reply is lost', () => {
  const losses: readonly (readonly [name: string, faults: object[]])[] = [
    ['reset after it was applied', [{ ...post, kind: 'reset', apply: true, count: 2 }]],
    ['reset before it was applied', [{ ...post, kind: 'reset', apply: false, count: 2 }]],
    ['cut off in its answer', [{ ...post, kind: 'truncate', bytes: 120, count: 2 }]],
    ['a 500 before it was applied', [{ ...post, kind: 'status', status: 500, count: 2 }]],
    ['stalled after it was applied', [{ ...post, kind: 'stall', apply: true, count: 2 }]],
    ['lost while reads are stale', [{ ...post, kind: 'reset', apply: true, count: 1 }, { ...read, kind: 'staleRead', count: 2 }]],
    ['lost twice', [{ ...post, kind: 'reset', apply: false, count: 1 }, { ...post, kind: 'reset', apply: true, skip: 4, count: 1 }]],
    ['lost, with reads that fail at first', [{ ...post, kind: 'reset', apply: true, count: 1 }, { ...read, kind: 'status', status: 503, count: 2 }]],
  ] // prettier-ignore
  it('is read back, and the client gets the real outcome', async () => {
    // The losses run concurrently, because each waits for its last read.
    const outcomes = losses.map(async ([name, faults]) => {
      const sandbox = await startSandbox()
      const partners = onePartner({ v3: { readBackAfterMs: [20, 40, 800] } })
      const adapter = await startAdapter(sandbox.url, { ...partners, v3: { timeouts: { headersMs: 500 } } })
      const register = await sandboxRegister(sandbox, 4)
      await sandbox.put('faults', faults)
      const parts = readBatchReply(await postBatch(adapter, register.batch, register.headers))
      const ids = parts.map(({ json }) => (json as { ExternalID?: string }).ExternalID)
      const written = [...(await register.written())].sort()
      expect([name, written]).toEqual([name, [...register.learners].sort()])
      return [name, failuresOf(parts), new Set(ids).size]
    })
    expect(await Promise.all(outcomes)).toEqual(losses.map(([name]) => [name, created(4), 4]))
  })

  it.each([
    { when: 'and is not posted again if the last read shows the mark', readBackAfterMs: [20, 40, 60], effects: 1, seen: 1, leastSeconds: 0.12 },
    { when: 'and is posted twice, as documented, if the mark shows only after the last read', readBackAfterMs: [20, 40], effects: 2, seen: 0, leastSeconds: 0 },
  ])(
    'is read back after the configured delays $when',
    async ({ readBackAfterMs, effects, seen, leastSeconds }) => {
      const sandbox = await startSandbox()
      const adapter = await startAdapter(sandbox.url, onePartner({ v3: { readBackAfterMs } }))
      const register = await sandboxRegister(sandbox, 1)
      const faults = [
        { ...post, kind: 'reset', apply: true, count: 1 },
        { ...read, kind: 'staleRead', count: 2 },
      ]
      await sandbox.put('faults', faults)
      const parts = readBatchReply(await postBatch(adapter, register.batch, register.headers))
      expect(failuresOf(parts)).toEqual(created(1))
      expect((await register.written()).length).toBe(effects)
      const samples = await readSamples(adapter)
      const [count = 0, sum = 0] = ['count', 'sum'].map((name) =>
        samples.get(`markbridge_read_back_visible_seconds_${name}`),
      )
      expect(count).toBe(seen)
      expect(sum).toBeGreaterThanOrEqual(leastSeconds)
      expect(sum).toBeLessThan(3)
    },
  ) // prettier-ignore

  it('stays unknown when V3 cannot be read', async () => {
    const sandbox = await startSandbox()
    const adapter = await startAdapter(sandbox.url, onePartner({ v3: { readBackAfterMs: [20, 40] } }))
    const register = await sandboxRegister(sandbox, 3)
    const faults = [
      { ...post, kind: 'reset', apply: true, count: 1 },
      { ...read, kind: 'status', status: 500 },
    ]
    await sandbox.put('faults', faults)
    const parts = readBatchReply(await postBatch(adapter, register.batch, register.headers))
    expect(parts.map(({ status }) => status).sort()).toEqual([201, 201, 504])
    expect((await register.written()).length).toBe(3)
  })
})
