import { expect, it } from 'vitest'

import { rolloutFile } from '../cli/rollout-file.ts'
import { runCommand } from '../cli/run-command.ts'
import { sampleMark, sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { batchOf, postBatch } from '../support/batch-request.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const stages = [
  ['shadow', 'v2'],
  ['v3', 'v3'],
] as const

it.each(stages)('the advice at stage %s has the figures of the writes that %s served', async (stage) => {
  const sandbox = await startSandbox({ now: new Date().toISOString() })
  const samples = await sandbox.samples()
  const journal = journalFile()
  const partner = { stage, canary: { header: 'x-school' }, v2: { baseUrl: sandbox.url } }
  const adapter = await startAdapter(sandbox.url, {
    journal,
    partners: [{ id: 'acme', match: { any: true }, ...partner }],
  })
  for (const [number, school] of ['one', 'two', 'one'].entries()) {
    const batch = batchOf(
      [0, 1, 2].map((learner) =>
        sampleMark(samples, learner, {
          AttendableEvent: samples.events[school === 'one' ? 0 : 1],
          SchoolAttendanceCode: samples.codes[number % 2]?.id,
        }),
      ),
      { batch: `batch_${number}`, changeset: `changeset_${number}` },
    )
    const headers = { ...batch.headers, ...sandboxHeaders, 'x-school': school }
    expect((await postBatch(adapter, { ...batch, headers })).status).toBe(200)
  }
  await adapter.app.close()
  const config = await rolloutFile(journal.url, { partner })
  const advise = await runCommand(['rollout', 'advise', 'acme', '--config', config, '--json'])
  expect(advise.stderr).toBe('')
  expect(JSON.parse(advise.stdout)).toMatchObject({
    partner: 'acme',
    from: { stage },
    verdict: 'inconclusive',
    missing: expect.arrayContaining([
      expect.stringMatching(/^6 of 1000 distinct records were seen/),
      expect.stringMatching(/^3 of 100 batches were seen/),
    ]) as unknown,
    figures: {
      records: 6,
      batches: 3,
      schools: 2,
      codes: 2,
      peakRecordsPerSecond: expect.any(Number) as unknown,
    },
  })
  const text = await runCommand(['rollout', 'advise', 'acme', '--config', config])
  expect(text.stdout).toContain(
    'seen: about 6 different records in 3 batches of about 2 schools, with 2 attendance codes',
  )
})
