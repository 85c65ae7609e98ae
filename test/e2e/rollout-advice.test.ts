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

it.each(stages)(
  'rollout advise, at stage %s, counts the writes that %s served, but no resends',
  async (stage) => {
    const sandbox = await startSandbox({ now: new Date().toISOString() })
    const samples = await sandbox.samples()
    const journal = journalFile()
    const partner = { stage, canary: { header: 'x-school' }, v2: { baseUrl: sandbox.url } }
    const start = () =>
      startAdapter(sandbox.url, { journal, partners: [{ id: 'acme', match: { any: true }, ...partner }] })
    const adapter = await start()
    const requests: Parameters<typeof postBatch>[1][] = []
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
      const request = { ...batch, headers }
      requests.push(request)
      expect((await postBatch(adapter, request)).status).toBe(200)
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
        expect.stringMatching(/^6 of 1,000 distinct records were seen/),
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

    const restart = ['set', 'acme', stage, '--restart-evidence', '--reason', 'a resend is no evidence']
    const restarted = await runCommand(['rollout', ...restart, '--config', config])
    expect([restarted.stderr, restarted.status]).toEqual(['', 0])
    const later = await start()
    for (const request of requests) expect((await postBatch(later, request)).status).toBe(200)
    await later.app.close()
    const again = await runCommand(['rollout', 'advise', 'acme', '--config', config, '--json'])
    expect(JSON.parse(again.stdout)).toMatchObject({
      figures: { records: 0, batches: 0, schools: 0, codes: 0 },
    })
  },
)
