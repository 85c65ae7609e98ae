import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { promisify } from 'node:util'

import { expect, onTestFinished, test } from 'vitest'

import { createBatchEncoder, type PartReply } from '../../src/v2/batch/encode-batch.ts'
import { batchOf, flatRecords, guid } from '../support/batch-request.ts'
import { mainOfCli } from '../support/main-of-cli.ts'
import { echoRecord, type SeenRequest, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { ownFile } from './own-file.ts'
import { runCli, startCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const batchFile = (text = batchOf(flatRecords(4)).body): Promise<string> => ownFile('batch.txt', text)

/** Starts an adapter whose service holds back the third of four records until `release` is called; `args` sends the records. */
async function holdThird(): Promise<{ args: string[]; release: () => void }> {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const upstream = await startUpstream(async (seen, response) => {
    if (seen.body.includes(guid(3))) await released
    await echoRecord(seen, response)
  })
  const adapter = await startAdapter(upstream.url)
  onTestFinished(release)
  return { args: ['send', await batchFile(), '--to', adapter.url], release }
}

/** Starts a service that answers every batch with `answer`. */
const serve = async (answer: (response: ServerResponse, seen: SeenRequest) => void): Promise<string> =>
  (await startUpstream((seen, response) => answer(response, seen))).url

const part = (status: number, errors: object[] = []): PartReply => ({
  contentId: '1',
  contentIdInHttp: false,
  changeset: 1,
  status,
  json: status < 300 ? JSON.stringify({ ExternalID: guid(7) }) : JSON.stringify(errors),
})

/** Creates a reply with these parts, complete or cut off after the last part. */
const replyOf =
  (parts: readonly PartReply[], isWhole = true) =>
  (response: ServerResponse): void => {
    const encoder = createBatchEncoder('flat', () => guid(1))
    response.writeHead(200, { 'Content-Type': encoder.contentType })
    response.write(parts.map((reply) => encoder.part(reply)).join(''))
    if (isWhole) response.end(encoder.close(0))
    else response.write('--', () => response.destroy())
  }

const columns = (stdout: string): string[][] =>
  stdout
    .split('\n')
    .filter((line) => /^ +\d+ /.test(line))
    .map((line) => line.trim().split(/ {2,}/).slice(0, 3))

test('send prints each part as it arrives, and its progress every second', async () => {
  const { args, release } = await holdThird()
  const sending = startCli(args)
  const early = await sending.until(/^ +2 .*\n/m)
  expect(columns(early)).toEqual([
    ['1', '1', '201'],
    ['2', '2', '201'],
  ])
  await sending.untilErrors(/(?:2 of 4 parts, \d\.\d\/s, \d+ s left\n){2}/)
  release()
  const { status, stdout, stderr } = await sending.ended()
  expect(status).toBe(0)
  expect(columns(stdout)).toHaveLength(4)
  expect(stdout).toMatch(/\n4 accepted, 0 not accepted\n$/)
  expect(stderr).toMatch(/^(?:\d of 4 parts, \d\.\d\/s.*\n)+$/)
})

test.each(['SIGINT', 'SIGTERM'] as const)(
  'send prints the outcomes received so far on %s',
  async (signal) => {
    const { args } = await holdThird()
    const sending = startCli(args)
    await sending.until(/ 2 +2 +201/)
    expect(await sending.stop(signal)).toBe(1)
    const { stdout, stderr } = await sending.ended()
    expect(stderr.replaceAll(/\d of 4 parts, .*\n/g, '')).toBe('')
    expect(stdout).toMatch(
      /2 accepted, 0 not accepted\nWaiting was stopped\. The outcome of 2 of 4 records is unknown\. .*\n$/,
    )
  },
)

test('send reports all outcomes as unknown on SIGINT before the first part', async () => {
  const url = await serve(() => undefined)
  const sending = startCli(['send', await batchFile(), '--to', url])
  await sending.untilErrors(/0 of 4 parts, 0\.0\/s\n/)
  expect(await sending.stop('SIGINT')).toBe(1)
  const { stdout } = await sending.ended()
  expect(stdout).toMatch(/^0 accepted, 0 not accepted\nWaiting was stopped\. The outcome of 4 of 4 records/)
})

test.each<[what: string, parts: PartReply[], status: number, last: RegExp]>([
  ['accepted', [part(201), part(204), part(201), part(201)], 0, /\n4 accepted, 0 not accepted\n$/],
  ['refused', [part(201), part(400, [{ ErrorCode: 'ATT_VAL_2', Message: 'No.' }]), part(405), part(409)], 1, /\n1 accepted, 3 not accepted: 3 refused\n$/],
  ['unknown', [part(201), part(504, [{ ErrorCode: 'ADP_OUTCOME_UNKNOWN' }]), part(503), part(502)], 1, /\n1 accepted, 3 not accepted: 1 unknown, 2 not applied\nSome outcomes are unknown\. .*\n$/],
  ['fewer outcomes than records', [part(201)], 1, /\n1 accepted, 0 not accepted\nThe reply has too few parts\. The outcome of 3 of 4 records/],
])('send exits with the status of the worst outcome: %s', async (_, parts, expected, last) => {
  const url = await serve(replyOf(parts))
  const { status, stdout } = await runCommand(['send', await batchFile(), '--to', url])
  expect([status, stdout]).toEqual([expected, expect.stringMatching(last)])
  const json = await runCommand(['send', await batchFile(), '--to', url, '--json'])
  const document = JSON.parse(json.stdout) as { records: unknown[] }
  expect([json.status, document]).toMatchObject([expected, { expected: 4, complete: true }])
  expect(document.records).toHaveLength(parts.length)
}) // prettier-ignore

test('send adds the header fields that its flags name', async () => {
  const seen: unknown[] = []
  const url = await serve((response, { headers }) => {
    seen.push(headers['x-school'], headers['x-class'], headers.authorization)
    replyOf([part(201)])(response)
  })
  const fields = ['--header', 'X-School: school-1', '--header', 'x-class:4B']
  await runCommand(['send', await batchFile(), '--to', url, ...fields])
  expect(seen).toEqual(['school-1', '4B', 'bearer sandbox'])
})

test('send shows the ids of records inside the d envelope of OData V2', async () => {
  const { json, ...accepted } = part(201)
  const url = await serve(replyOf([{ ...accepted, json: `{"d":${json ?? ''}}` }]))
  const { status, stdout } = await runCommand([
    'send',
    await batchFile(batchOf(flatRecords(1)).body),
    '--to',
    url,
  ])
  expect([status, stdout]).toEqual([0, expect.stringContaining(guid(7))])
})

test('send prints the outcomes received so far, and what to do, if the reply is cut off', async () => {
  const url = await serve(replyOf([part(201), part(201)], false))
  const { status, stdout, stderr } = await runCommand(['send', await batchFile(), '--to', url])
  expect([status, stderr]).toEqual([1, ''])
  expect(stdout).toMatch(
    /\n2 accepted, 0 not accepted\nThe reply was cut off\. The outcome of 2 of 4 records/,
  )
  const json = await runCommand(['send', await batchFile(), '--to', url, '--json'])
  expect(JSON.parse(json.stdout)).toMatchObject({ complete: false, expected: 4, records: [{}, {}] })
  const silent = await serve((response) => response.destroy())
  const none = await runCommand(['send', await batchFile(), '--to', silent])
  expect([none.status, none.stdout]).toEqual([1, expect.stringContaining('outcome of 4 of 4 records')])
})

test('send prints the error of the response if the whole batch is refused', async () => {
  const adapter = await startAdapter('http://127.0.0.1:1')
  const cut = batchOf(flatRecords(4)).body.slice(0, 900)
  const { status, stderr, stdout } = await runCommand(['send', await batchFile(cut), '--to', adapter.url])
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(
    /^markbridge: The whole batch was answered 400: ADP_TRUNCATED .* \(.*offset 900\)\n$/,
  )
  const page = await serve((response) => response.end('<html>'))
  const other = await runCommand(['send', await batchFile(), '--to', page])
  expect([other.status, other.stderr]).toEqual([1, expect.stringContaining('Check that --to')])
})

test('send sends nothing if the subscription key is not a valid header value, and does not print the key', async () => {
  const { url, seen } = await startUpstream()
  const { status, stderr } = await runCommand(['send', await batchFile(), '--to', url], {
    MARKBRIDGE_SUBSCRIPTION_KEY: 'ключ',
  })
  expect([status, seen]).toEqual([2, []])
  expect(stderr).toMatch(/^markbridge: a header field .* HTTP cannot carry .*\. Nothing was sent\. /)
  expect(stderr).not.toContain('ключ')
})

test('send exits with the same status even if the reader of its output disconnects early', async () => {
  const adapter = await startAdapter((await startUpstream()).url)
  const args = `send ${await batchFile()} --to ${adapter.url}`
  const { stdout, stderr } = await promisify(execFile)('bash', [
    '-c',
    `'${process.execPath}' '${mainOfCli}' ${args} | true; echo "\${PIPESTATUS[0]}"`,
  ])
  expect([stdout, stderr]).toEqual(['0\n', ''])
})

test('send posts a whole HTTP request from a file, and a batch from standard input', async () => {
  const upstream = await startUpstream()
  const adapter = await startAdapter(upstream.url)
  for (const name of ['gzip-chunked', 'single-quotes', 'boundary-quoted']) {
    const path = `fixtures/${name}/request.http`
    const { status, stdout } = await runCommand(['send', path, '--to', adapter.url])
    expect([name, status, columns(stdout).length > 0]).toEqual([name, 0, true])
  }
  const body = await readFile(new URL('../../fixtures/class-register/body.txt', import.meta.url), 'utf8')
  const piped = await runCli(['send', '-', '--to', adapter.url], {}, body)
  expect([piped.status, columns(piped.stdout).length]).toEqual([0, 30])
  const prose = await runCommand(['send', '-', '--to', adapter.url], {}, 'Prose.')
  expect([prose.status, prose.stderr]).toEqual([2, expect.stringContaining('no line begins with a boundary')])
})
