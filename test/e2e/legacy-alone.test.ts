import { describe, expect, it, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createNoJournal } from '../../src/journal/index.ts'
import { freePort } from '../support/free-port.ts'
import { flatRecord } from '../support/batch-request.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const path = '/x/V2/Attendance/AttendanceRecords'
describe('stage legacy with neither journal nor V3', () => {
  it('starts and serves; what needs the journal is refused with nothing sent', async () => {
    const v2 = await startUpstream(replyWith(201, { from: 'V2' }))
    const adapter = await startAdapter(`http://127.0.0.1:${await freePort()}`, {
      journal: { url: `postgres://nobody@127.0.0.1:${await freePort()}/none` },
      v2: { baseUrl: v2.url },
      partners: [
        { id: 'old', match: { header: { name: 'X-P', value: 'old' } }, stageOverride: 'legacy' },
        { id: 'new', match: { any: true } },
      ],
    })
    const body = JSON.stringify(flatRecord(1))
    const old = await adapter.request('POST', path, { body, headers: { 'X-P': 'old' } })
    expect([old.status, old.text]).toEqual([201, '{"from":"V2"}'])
    const moved = await adapter.request('POST', path, { body })
    expect([moved.status, JSON.parse(moved.text)]).toMatchObject([503, { error: {} }])
    expect(v2.seen).toHaveLength(1)
    expect((await adapter.request('GET', '/readyz')).status).toBe(503)
  })

  it('opens the journal once it can be reached, and is ready then', async () => {
    const v2 = await startUpstream(replyWith(201, { from: 'V2' }))
    let isThere = false
    const openJournal = () =>
      isThere
        ? Promise.resolve(createNoJournal())
        : Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'away'))
    const adapter = await startAdapter(
      v2.url,
      { journal: journalFile(), v2: { baseUrl: v2.url } },
      { openJournal },
    )
    expect((await adapter.request('GET', '/readyz')).status).toBe(503)
    isThere = true
    await vi.waitFor(async () => expect((await adapter.request('GET', '/readyz')).status).toBe(200), {
      timeout: 60_000,
    })
    const messages = adapter.events().map(({ msg }) => msg)
    expect(messages).toContain('journal failed')
    expect(messages).toContain('journal recovered')
  })
})
