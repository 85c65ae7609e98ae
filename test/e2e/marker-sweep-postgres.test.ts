import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterAll, expect, test, vi } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { runCommand } from '../cli/run-command.ts'
import { batchOf, batchPath, type BatchSpelling } from '../support/batch-request.ts'
import { readSamples } from '../support/read-samples.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { missingPostgres, startPostgres } from '../support/start-postgres.ts'
import { filesBelow, findMarkers, type Output, textOutput } from './support/find-markers.ts'
import { readTables } from './support/read-tables.ts'
import { clientHeaders, ownFolder, startService } from './support/swept-service.ts'

const postgres = missingPostgres() === undefined ? await startPostgres() : undefined
afterAll(() => postgres?.close())

const journalKey = 'ab'.repeat(32)

async function post(
  adapter: Adapter,
  records: readonly (object | string)[],
  partner: string,
  spelling: BatchSpelling = {},
) {
  const { headers, body } = batchOf(records, spelling)
  const all = { ...clientHeaders, ...headers, 'x-partner': partner }
  return (await adapter.request('POST', batchPath, { headers: all, body })).text
}

test.skipIf(postgres === undefined)(
  'an encrypted PostgreSQL journal, the output of comparison and certificates contain no value of a learner or a mark, and no credential',
  async () => {
    const folder = ownFolder()
    const { url, v2Url, samples, put, mark } = await startService()
    // Removes the fixed clock of the sandbox, so that its times agree with the adapter's.
    await fetch(`${url}/_sandbox/clock`, { method: 'DELETE' })
    const journalUrl = (await postgres?.createDatabase()) ?? ''
    const match = { header: { name: 'x-partner', value: 'beta' } }
    const compare = { settleMs: 500 }
    const partners = [
      { id: 'beta', match, stage: 'v3', check: { v2: 100 }, compare },
      { id: 'acme', match: { any: true }, stage: 'shadow', compare },
    ]
    const adapter = await startAdapter(url, {
      ...{ v2: { baseUrl: v2Url }, partners },
      journal: { url: journalUrl, stateDir: folder, keys: [{ id: 'k1', key: new Secret(journalKey) }] },
    })
    // Makes V2 cut the comments of two marks that V3 accepts, so that comparison finds differences.
    await put('differences', {
      face: 'V2',
      rows: [3, 4].map((index) => ({
        learner: samples.learners[index],
        event: samples.events[index],
        kind: 'commentCut',
      })),
    })
    // Puts a marker into an error text of V2, because an error may quote the request.
    await put('legacy-form', { errorMessages: { ATT_VAL_2: 'HUSHCOMMENT does not exist.' } })
    const unknown = { ...mark(0), AttendableEvent: randomUUID() }
    expect(await post(adapter, [mark(0), mark(1), unknown, '{"HUSHCOMMENT'], 'acme')).toContain('HUSHCOMMENT')
    await post(adapter, [mark(2)], 'acme', { boundary: `batch_${randomUUID()}` })
    expect(await post(adapter, [mark(3), mark(4), mark(5), unknown], 'beta')).toContain('HUSHCOMMENT')
    await vi.waitFor(async () => {
      const samplesNow = [...(await readSamples(adapter))]
      const of = (name: string): number =>
        samplesNow.filter(([sample]) => sample.includes(name)).reduce((sum, [, value]) => sum + value, 0)
      expect([of('compare_waiting'), of('compare_compared_total')]).toEqual([0, 3])
    }, 60_000)
    const metrics = await adapter.request('GET', '/metrics')
    await adapter.app.close()

    const config = join(folder, 'markbridge.json')
    const file = {
      ...{ upstreams: { v3: { baseUrl: url }, v2: { baseUrl: v2Url } }, partners },
      journal: { url: journalUrl, stateDir: folder, keys: [{ id: 'k1', key: { env: 'JOURNAL_KEY' } }] },
    }
    writeFileSync(config, JSON.stringify(file))
    const signing = join(folder, 'signing.pem')
    writeFileSync(signing, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const outputs: Output[] = []
    const command = async (...args: string[]): Promise<string> => {
      const all = [...args, '--config', config]
      const { status, stdout, stderr } = await runCommand(all, { JOURNAL_KEY: journalKey })
      expect([args.join(' '), status, stderr]).toEqual([args.join(' '), 0, expect.any(String)])
      outputs.push(textOutput(args.join(' '), stdout + stderr))
      return stdout
    }
    expect(await command('compare', 'learn', 'acme')).toContain('# quirks.mismatch: not proposed')
    await command('compare', 'learn', 'acme', '--json')
    for (const partner of ['acme', 'beta']) {
      const certificate = join(folder, `${partner}.jws`)
      await command('rollout', 'certify', partner, '--signing-key', `file:${signing}`, '--out', certificate)
      // Prints the content of the certificate in plain text, because the file encodes it.
      await command('rollout', 'verify', certificate, '--json')
      await command('rollout', 'advise', partner, '--json')
      for (const format of ['html', 'json', 'csv', 'junit'])
        await command('compare', 'report', `live:${partner}`, '--format', format, '--exact')
    }
    await command('journal', 'ls')

    const tables = await readTables(journalUrl)
    const used = ['evidence_periods', 'evidence_counts', 'evidence_hashes', 'rollout_evidence', 'journal_payloads', 'journal_answers', 'journal_records'] // prettier-ignore
    expect(used.filter((name) => (tables.counts.get(name) ?? 0) === 0)).toEqual([])
    const written = filesBelow(folder).filter(({ name }) => name !== 'markbridge.json')
    expect(written.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['acme.jws', 'beta.jws', 'journal.mark']),
    )
    const ids = [0, 1, 2, 3, 4, 5].flatMap((index) => {
      const { Learner = '', AttendableEvent = '', SchoolAttendanceCode = '' } = mark(index)
      return [Learner, AttendableEvent, SchoolAttendanceCode]
    })
    const all = [
      ...[...outputs, ...tables.outputs, ...written],
      ...[textOutput('metrics', metrics.text), textOutput('log', adapter.log.join(''))],
    ]
    expect(
      findMarkers(all, ['HUSHCOMMENT', 'HUSHKEY', 'HUSHTOKEN', unknown.AttendableEvent, ...ids]),
    ).toEqual([])
  },
)
