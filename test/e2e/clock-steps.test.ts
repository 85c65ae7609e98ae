import { describe, expect, it } from 'vitest'

import { sampleMark, sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { batchOf, outcomesOf, postBatch } from '../support/batch-request.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const MINUTE_MS = 60_000
const START_MS = Date.parse('2026-06-10T10:00:00.123Z')

describe('an adapter whose clock is set back by an hour', () => {
  it.each([
    ['without a journal', undefined],
    ['with a journal', 'sqlite'],
  ])('gives each new mark a later time than all earlier marks (%s)', async (_what, kind) => {
    const sandbox = await startSandbox({ onExisting: 'duplicate', now: '2026-06-10T10:00:00Z' })
    const journal = kind === undefined ? {} : { journal: { url: journalFile().url } }
    let nowMs = START_MS
    const partner = onePartner({ v3: { readBackAfterMs: [5, 10], writeMode: 'single' } })
    const adapter = await startAdapter(sandbox.url, { ...partner, ...journal }, { nowMs: () => nowMs })
    const samples = await sandbox.samples()
    const { learners, events } = samples
    const send = async (Comment: string, name: string): Promise<unknown> => {
      const mark = sampleMark(samples, 0, { AttendableEvent: events[2], Comment })
      const batch = batchOf([mark], { batch: `batch_${name}`, changeset: `changeset_${name}` })
      return outcomesOf(await postBatch(adapter, batch, sandboxHeaders))
    }
    const created = [{ status: 201, codes: 'record' }]
    expect(await send('one', 'a')).toEqual(created)
    nowMs += MINUTE_MS
    expect(await send('two', 'b')).toEqual(created)
    nowMs -= 60 * MINUTE_MS
    const fault = { method: 'POST', path: 'AttendanceRecords', kind: 'reset', apply: false, count: 1 }
    await sandbox.put('faults', fault)
    // The reset loses this post. The newest mark is still 'two', so the read-back must not take the older 'one' for the lost mark.
    expect(await send('one', 'c')).toEqual(created)
    const filter = `Attendee/ExternalID eq ${learners[0]} and Event/ExternalID eq ${events[2]}`
    const path = `/Attendance/V3/AttendanceRecords?$filter=${encodeURIComponent(filter)}`
    const { value } = (await sandbox.json('GET', path)).body as {
      value: { RecordedOn: string; Qualifier: { Comment: string | null } }[]
    }
    const newest = value
      .toSorted((one, other) => Date.parse(one.RecordedOn) - Date.parse(other.RecordedOn))
      .at(-1)
    expect([newest?.Qualifier.Comment, newest?.RecordedOn]).toEqual(['one', '2026-06-10T10:01:00.123Z'])
  })
})
