import { expect, it, vi } from 'vitest'

import { openConsoleData } from '../../../src/app/console/open-console-data.ts'
import { backgroundClock } from '../../../src/clock.ts'
import { Secret } from '../../../src/config/index.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { batchOf, flatRecords, guid, postBatch } from '../../support/batch-request.ts'
import { adapterConfig, startWithV3 } from '../../support/start-adapter.ts'

const TIME_MS = 20_000

it('the console data of an instance answers queries about received batches and figures in its own thread', async () => {
  const folder = await makeFolder()
  const journal = { url: `sqlite:${folder}/journal.db`, keys: [{ id: 'k1', key: new Secret('ab'.repeat(32)) }] }
  const { adapter } = await startWithV3(undefined, {
    journal,
    console: { port: 0 },
  })
  const { text } = await postBatch(adapter, batchOf(flatRecords(3)))
  expect(text).toContain('201 Created')
  await postBatch(adapter, batchOf(flatRecords(3)))
  const data = adapter.app.consoleData()
  const learner = await vi.waitFor(async () => {
    const hash = await data?.hash('learner', guid(2))
    expect(hash).toBeDefined()
    return hash
  }, TIME_MS)
  await vi.waitFor(async () => {
    const found = await data?.search({ learner }, 'all')
    expect(found).toMatchObject({ kind: 'records', records: [{ batch: 1, position: 1, contentId: '2', state: 'confirmed' }] }) // prettier-ignore
    expect((await data?.batch(1, 'all'))?.timeline).toMatchObject([{ kind: 'replayed' }])
  }, TIME_MS)
  expect(await data?.retry(1)).toBe(0)
  expect(await data?.dismiss(1)).toBe(0)
  // Queued data is written when the adapter closes.
  await adapter.app.close()
  expect(adapter.events().filter(({ msg }) => msg === 'console data unavailable')).toEqual([])

  const config = adapterConfig('http://127.0.0.1:1', { journal }) // prettier-ignore
  const later = openConsoleData({ ...config, clock: backgroundClock, onFailure: () => undefined })
  await vi.waitFor(async () => {
    const overview = await later?.overview('hour', 'all')
    expect(overview?.balances).toMatchObject([{ partner: 'default', received: 3, confirmed: 3 }])
    const calls = overview?.traffic.calls.map(({ name, counts }) => [name, counts.reduce((sum, n) => sum + n)])
    expect(calls).toEqual([['2xx', 3]])
    expect(overview?.reportedMs).toBeDefined()
  }, TIME_MS)
  await later?.close()
})

it('the console data of an instance waits for a missing journal, and reports once that it is missing', async () => {
  const folder = await makeFolder()
  const failures: string[] = []
  const config = adapterConfig('http://127.0.0.1:1', { journal: { url: `sqlite:${folder}/journal.db` } })
  const data = openConsoleData({ ...config, clock: backgroundClock, onFailure: () => failures.push('failed') })
  await vi.waitFor(() => expect(failures).toEqual(['failed']), TIME_MS)
  await expect(data?.overview('live', 'all')).rejects.toMatchObject({ code: 'ADP_JOURNAL_UNAVAILABLE' })
  await data?.close()
  expect(openConsoleData({ ...adapterConfig('http://127.0.0.1:1'), clock: backgroundClock, onFailure: () => undefined })).toBeUndefined() // prettier-ignore
})
