import { describe, expect, it, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createNoJournal } from '../../src/journal/index.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

describe('an adapter whose journal is unreachable at its start', () => {
  it('opens the journal when the store becomes reachable, and is then ready', async () => {
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
