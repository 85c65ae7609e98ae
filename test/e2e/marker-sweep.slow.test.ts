import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test, vi } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { runCli, startCli } from '../cli/run-cli.ts'
import { runCommand } from '../cli/run-command.ts'
import { batchOf, batchPath, type BatchText } from '../support/batch-request.ts'
import { readSamples } from '../support/read-samples.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { filesBelow, findMarkers, type Output, textOutput } from './support/find-markers.ts'
import { clientHeaders, key, marks, ownFolder, startService, token } from './support/swept-service.ts'

const [from, to] = ['2026-03-02', '2026-03-13']

async function record(
  args: readonly string[],
  environment: Record<string, string>,
  { headers, body }: BatchText,
): Promise<string> {
  const cli = startCli(['record', '--port', '0', ...args], { ...environment, RECORDING_KEY: '0c'.repeat(32) })
  const [address = ''] = /http:\S+/.exec(await cli.until(/record ready http:\S+\n/)) ?? []
  const all = { ...clientHeaders, ...headers }
  const filter = encodeURIComponent(
    `AttendableEventStart ge ${from}T00:00:00Z and AttendableEventStart lt ${to}T00:00:00Z`,
  )
  const reply = await fetch(`${address}${batchPath}`, { method: 'POST', headers: all, body })
  expect(await reply.text()).toContain('HUSHCOMMENT')
  const read = await fetch(`${address}${marks}?$filter=${filter}`, { headers: clientHeaders })
  expect([read.status, (await read.text()).includes('HUSHCOMMENT')]).toEqual([200, true])
  expect(await cli.stop()).toBe(0)
  const { stdout, stderr } = await cli.ended()
  expect(stdout + stderr).toContain('2 of 2 exchange(s) recorded')
  return stdout + stderr
}

test('the output of comparison contains no value of a learner or a mark, and no credential', async () => {
  const folder = ownFolder()
  const temporary = join(folder, 'tmp')
  mkdirSync(temporary)
  const { url, v2Url, samples, put, mark } = await startService()
  const learners = samples.learners.slice(0, 6)
  const records = learners.map((_, index) => mark(index))

  // Live comparison: V2 serves. V3 cuts the comments of the marks that it shows, and one read of V3 does not show the marks yet.
  await put('differences', {
    face: 'V3',
    rows: records.map(({ Learner, AttendableEvent }) => ({
      ...{ learner: Learner, event: AttendableEvent, kind: 'commentCut' },
    })),
  })
  await put('faults', { kind: 'staleRead', count: 1 })
  const adapter = await startAdapter(url, {
    v2: { baseUrl: v2Url },
    partners: [
      {
        ...{ id: 'acme', match: { any: true }, stage: 'shadow', compare: { settleMs: 1_000 } },
      },
    ],
    journal: {
      url: `sqlite:${join(folder, 'journal.db')}`,
      keys: [{ id: 'k1', key: new Secret('ab'.repeat(32)) }],
    },
  })
  const batch = batchOf([...records, { ...records[0], Learner: 'HUSHCOMMENT' }, '{"HUSHCOMMENT'])
  const served = await adapter.request('POST', batchPath, {
    headers: { ...clientHeaders, ...batch.headers },
    body: batch.body,
  })
  expect(served.text).toContain('HUSHCOMMENT')
  const filter = `AttendableEventStart ge ${from}T00:00:00Z and AttendableEventStart lt ${to}T00:00:00Z`
  const read = await adapter.request('GET', `${marks}?$filter=${encodeURIComponent(filter)}`, {
    headers: clientHeaders,
  })
  const shown = (
    JSON.parse(read.text) as { value: Record<'ExternalID' | 'Learner' | 'AttendableEvent', string>[] }
  ).value
  const countOf = async (name: string): Promise<number> =>
    [...(await readSamples(adapter))].reduce(
      (sum, [sample, value]) => sum + (sample.startsWith(`markbridge_compare_${name}_total`) ? value : 0),
      0,
    )
  // Waits for two comparisons: of the reply to the write, and of the answer to the read.
  await vi.waitFor(async () => expect(await countOf('compared')).toBeGreaterThanOrEqual(2), 60_000)
  const metrics = await adapter.request('GET', '/metrics')

  // Offline comparison: a complete run, a run without V3, and a run with a token that the services reject.
  const kinds = ['code', 'recordedOn', 'missing', 'id', 'commentCut']
  const differing = shown.filter((_, at) => at % 7 === 0).slice(0, 30)
  const rows = differing.map(({ Learner, AttendableEvent }, at) => ({
    ...{ learner: Learner, event: AttendableEvent, kind: kinds[at % kinds.length] },
  }))
  await put('differences', { face: 'V3', rows })
  writeFileSync(join(folder, 'class.txt'), learners.join('\n'))
  const environment = { MARKBRIDGE_SUBSCRIPTION_KEY: key, MARKBRIDGE_TOKEN: token, TMPDIR: temporary }
  const compare = ['compare', 'run', '--v2', v2Url, '--v3', url, '--since', from, '--until', to]
  const out = ['--dir', join(folder, 'compare')]
  const away = [...compare.slice(0, 4), '--v3', 'http://127.0.0.1:9', ...compare.slice(6)]
  const kept = join(folder, 'recordings')
  const [run, gone, refused] = await Promise.all([
    runCli([...compare, ...out, '--noise', '--registrations', '--json'], environment),
    runCli([...away, ...out], environment),
    runCli([...compare, ...out, '--learners', join(folder, 'class.txt')], {
      ...environment,
      MARKBRIDGE_TOKEN: `${token}x`,
    }),
  ])
  const sealed = ['--key', 'env:RECORDING_KEY']
  const recorded = await record(['--v2', v2Url, '--out', kept, ...sealed], environment, batchOf(records))
  expect([run.status, gone.status, refused.status]).toEqual([1, 3, 3])
  const again = await runCli(
    [...['compare', 'run', '--recording', kept, ...sealed], '--v3', url, '--json', ...out],
    { ...environment, RECORDING_KEY: '0c'.repeat(32) },
  )
  expect(again.stdout).toContain('marks')

  const formats = ['html', 'json', 'csv', 'junit']
  const reports = await Promise.all(
    formats.map((format) =>
      runCommand([
        'compare',
        'report',
        'latest',
        '--dir',
        join(folder, 'compare'),
        '--format',
        format,
        '--exact',
      ]),
    ),
  )
  expect(reports.map(({ status }) => status)).toEqual([0, 0, 0, 0])

  const outputs: Output[] = [
    ...reports.map(({ stdout, stderr }, at) => textOutput(`report ${String(formats[at])}`, stdout + stderr)),
    textOutput('log of the adapter', adapter.log.join('')),
    textOutput('metrics', metrics.text),
    textOutput('compare run', run.stdout + run.stderr),
    textOutput('compare run without V3', gone.stdout + gone.stderr),
    textOutput('compare run, refused', refused.stdout + refused.stderr),
    textOutput('compare run of recordings', again.stdout + again.stderr),
    textOutput('record', recorded),
    ...filesBelow(kept),
    ...filesBelow(join(folder, 'compare')),
    ...filesBelow(temporary),
    ...filesBelow(folder).filter(({ name }) => name.startsWith('journal.db')),
  ]
  expect(outputs.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      ...[/^run-.*\.json$/, /request\.http\.sealed$/].map((name): unknown => expect.stringMatching(name)),
    ]),
  )
  const ids = [
    ...learners,
    ...records.flatMap(({ AttendableEvent = '' }) => AttendableEvent),
    ...samples.codes.slice(0, 6).map(({ id }) => id),
    ...shown.slice(0, 40).map(({ ExternalID }) => ExternalID),
    ...differing.flatMap(({ Learner, AttendableEvent, ExternalID }) => [
      Learner,
      AttendableEvent,
      ExternalID,
    ]),
  ]
  const markers = ['HUSHCOMMENT', 'HUSHKEY', 'HUSHTOKEN', ...new Set(ids)]
  expect(findMarkers(outputs, markers)).toEqual([])
})

test.each([
  ['text', Buffer.from('… HUSH-1f …')],
  ['upper case', Buffer.from('HUSH-1F')],
  ['percent', Buffer.from('a%20HUSH-1f')],
  ['utf-16', Buffer.from('xHUSH-1f', 'utf16le')],
  ['hex', Buffer.from(Buffer.from('HUSH-1f').toString('hex'))],
  ['base64 at 0', Buffer.from(Buffer.from('HUSH-1f!').toString('base64'))],
  ['base64 at 1', Buffer.from(Buffer.from('xyzaHUSH-1f').toString('base64'))],
  ['base64 at 2', Buffer.from(Buffer.from('xyHUSH-1f--').toString('base64'))],
])('the search for markers finds a marker that is written as %s', (form, bytes) => {
  const found = findMarkers([{ name: 'here', bytes }], ['HUSH-1f'])
  expect(found.some((one) => one.startsWith('here: ') && (form === 'percent' || one.includes(form)))).toBe(
    true,
  )
})

test('the search for markers finds a GUID that is written as 16 bytes', () => {
  const guid = '41dba12f-bcce-470b-8ce4-b260ffb62649'
  const bytes = Buffer.from(guid.replaceAll('-', ''), 'hex')
  expect(findMarkers([{ name: 'here', bytes }], [guid])).toEqual([`here: bytes of ${guid}`])
})
