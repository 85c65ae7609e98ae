import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { beforeAll, expect, test } from 'vitest'

import { makeFolder } from '../journal/open-sqlite.ts'
import { ownFile } from './own-file.ts'
import { runCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const FIXTURE = 'fixtures/class-register/body.txt'
let body: string

interface Document {
  readonly sound: boolean
  readonly idsAgree: boolean | null
  readonly records: readonly { readonly part: number; readonly v3: { readonly Attendee: object } | null }[]
  readonly findings: readonly {
    readonly number: number
    readonly code: string
    readonly offset?: number
    readonly remedy: string
  }[]
}

beforeAll(async () => {
  body = await readFile(new URL(`../../${FIXTURE}`, import.meta.url), 'utf8')
})

async function check(text: string, ...args: string[]): Promise<{ status: number; document: Document }> {
  const path = await ownFile('body.txt', text)
  const { status, stdout } = await runCommand(['check', path, '--json', ...args])
  return { status, document: JSON.parse(stdout) as Document }
}

test('a sound batch: its records, the V3 records they become, no error', async () => {
  const { status, stdout } = await runCommand(['check', FIXTURE])
  expect(status).toBe(0)
  expect(stdout).toMatch(/^fixtures\/class-register\/body\.txt: \d+ bytes, 30 records in 1 changeset\(s\)\n/)
  expect(stdout.match(/^part \d+ \(Content-ID \d+\): \{"ExternalID":"0{8}-/gm)).toHaveLength(30)
  expect(stdout).toContain('no findings')
})

test('a broken batch names offset and remedy and exits 1', async () => {
  const cut = body.slice(0, 3_000)
  const { status, document } = await check(cut)
  expect(status).toBe(1)
  expect(document.sound).toBe(false)
  expect(document.findings.at(-1)).toMatchObject({ code: 'ADP_TRUNCATED', offset: 3_000 })
  expect(document.findings.at(-1)?.remedy).toContain('Send the body whole')
})

test.each<{ finding: string; edit: (text: string) => string; args?: string[]; status?: number }>([
  { finding: 'bareLf', edit: (text) => text.replaceAll('\r\n', '\n') },
  {
    finding: 'idsDiffer',
    edit: (text) => text,
    args: ['--boundary', 'batch_00000000-0000-4000-8000-000000000000'],
  },
  {
    finding: 'quotedBoundary',
    edit: (text) => text.replaceAll(/batch_/g, 'batch ').replaceAll('changeset ', 'changeset_'),
  },
  { finding: 'noContentId', edit: (text) => text.replace('Content-ID: 3\r\n', '') },
  { finding: 'repeatedContentId', edit: (text) => text.replace('Content-ID: 3\r\n', 'Content-ID: 2\r\n') },
  { finding: 'convertedFields', edit: (text) => text.replace('"Present":true', '"Present":"True"') },
  { finding: 'unmappedFields', edit: (text) => text.replace('"Present"', '"Mood":1,"Present"') },
  {
    finding: 'innerHeadersIgnored',
    edit: (text) => text.replace('Accept-Charset', 'Authorization: bearer x\r\nAccept-Charset'),
  },
  {
    finding: 'wrongContentLength',
    edit: (text) => text.replace('Accept-Charset', 'Content-Length: 7\r\nAccept-Charset'),
  },
  {
    finding: 'singleQuotes',
    edit: (text) => text.replace(/\{"@odata[^}]*\}/, (json) => json.replaceAll('"', "'")),
  },
  { finding: 'presentAndAbsent', edit: (text) => text.replace('"Absent":false', '"Absent":true') },
  { finding: 'ADP_FIELD', edit: (text) => text.replace('"Absent":false', '"Absent":"no"'), status: 1 },
  { finding: 'ADP_JSON', edit: (text) => text.replace('"Absent":false', '"Absent":false,'), status: 1 },
  { finding: 'ADP_PART_TYPE', edit: (text) => text.replace('application/http', 'text/plain'), status: 1 },
  { finding: 'byteOrderMark', edit: (text) => `\uFEFF${text}` },
])('finds $finding', async ({ finding, edit, args = [], status = 0 }) => {
  const result = await check(edit(body), ...args)
  expect(result.document.findings.map(({ code }) => code)).toContain(finding)
  expect(result.status).toBe(status)
})

test('reads a whole HTTP request as well as a body', async () => {
  const boundary = /^--(\S+)/.exec(body)?.[1] ?? ''
  const credentials = 'Ocp-Apim-Subscription-Key: k\nAuthorization: bearer t\n'
  const head = `POST /V2/Attendance/$batch HTTP/1.1\nHost: adapter\n${credentials}Content-Type: multipart/mixed; boundary=${boundary}\n\n`
  for (const [own, codes] of [
    [head, ['bareLfInHead', 'noContentLength']],
    [head.replaceAll('\n', '\r\n'), ['noContentLength']],
  ] as const) {
    const { document } = await check(own + body)
    expect(document).toMatchObject({ sound: true, idsAgree: true, findings: codes.map((code) => ({ code })) })
    expect(document.records).toHaveLength(30)
  }
  const without = await check(head.replace(credentials, '') + body)
  expect([without.status, without.document.findings.map(({ code }) => code)]).toEqual([
    1,
    ['bareLfInHead', 'noContentLength', 'ADP_SUBSCRIPTION_KEY'],
  ])
})

test('takes a request line with a slip in it for a request, not for a preamble', async () => {
  const request = await readFile(
    new URL('../../fixtures/class-register/request.http', import.meta.url),
    'utf8',
  )
  for (const [slip, code] of [
    [request.replace('HTTP/1.1', 'HTTP/1.1x'), 'ADP_HEADER'],
    [request.replace('$batch HTTP/1.1', ''), 'ADP_NOT_FOUND'],
  ] as const) {
    const { status, document } = await check(slip)
    expect([status, document.findings.map((finding) => finding.code)]).toEqual([1, [code]])
  }
})

test('says how a Content-Length differs from what was recorded', async () => {
  const request = await readFile(
    new URL('../../fixtures/class-register/request.http', import.meta.url),
    'utf8',
  )
  const short = await check(
    request.replace(/Content-Length: (\d+)/, (_, n) => `Content-Length: ${Number(n) + 7}`),
  )
  expect(short.status).toBe(1)
  expect(short.document).toMatchObject({ sound: false, idsAgree: true })
  expect(short.document.findings).toMatchObject([
    {
      code: 'ADP_BODY',
      message: expect.stringContaining('announces 7 more bytes than the recording has') as unknown,
    },
  ])
  const long = await check(`${request}GET / HTTP/1.1\r\n\r\n`)
  expect(long.status).toBe(0)
  expect(long.document.findings).toMatchObject([{ code: 'secondRequest', severity: 'warning' }])
  const behind = await check(`${request}more`)
  expect(behind.status).toBe(1)
  expect(behind.document.findings).toMatchObject([{ code: 'bytesAfterRequest', severity: 'error' }])
})

test('reads standard input for -', async () => {
  const { status, stdout } = await runCli(['check', '-'], {}, body)
  expect(status).toBe(0)
  expect(stdout).toMatch(/^standard input: \d+ bytes, 30 records in 1 changeset\(s\)\n/)
  const json = await runCommand(['check', '-', '--json'], {}, body)
  expect(JSON.parse(json.stdout)).toMatchObject({ file: '-', sound: true })
  const nothing = await runCommand(['check', '-'], {}, '')
  expect([nothing.status, nothing.stdout]).toEqual([1, expect.stringContaining('ADP_TRUNCATED')])
})

test('a folder: each file in turn, a summary, the status of the worst', async () => {
  const recordings = await makeFolder()
  await mkdir(join(recordings, 'monday'), { recursive: true })
  const put = (name: string, text: string): Promise<void> => writeFile(join(recordings, name), text)
  await put('1.txt', body)
  await put('2.txt', body.replace('"Absent":false', '"Absent":"no"'))
  await put('monday/3.txt', body.slice(0, 3_000))
  await put('4-reply.http', 'HTTP/1.1 200 OK\r\n\r\n--b--')
  await put('5-read.http', 'GET /V2/Attendance/AttendanceRecords HTTP/1.1\r\nHost: a\r\n\r\n')
  await put('notes.md', 'Prose.\n')
  await put('.hidden', body)
  const { status, stdout } = await runCommand(['check', recordings])
  const lines = stdout
    .trimEnd()
    .split('\n')
    .filter((line) => !/^(?:\d+\.|   )/.test(line))
  expect({
    status,
    lines: lines.map((line) => line.replace(recordings, 'R').replace(/\d+ bytes/, 'n bytes')),
  }).toEqual({
    status: 1,
    lines: [
      'R/1.txt: n bytes, 30 records in 1 changeset(s)',
      'no findings',
      'R/2.txt: n bytes, 30 records in 1 changeset(s)',
      'R/4-reply.http: skipped, an HTTP reply',
      'R/5-read.http: skipped, an HTTP request that is not for $batch',
      'R/monday/3.txt: n bytes, refused: nothing of it would be posted',
      'R/notes.md: skipped, neither an HTTP request nor the body of a batch',
      '3 recordings: 1 accepted, 1 refused in part, 1 refused as a whole; 3 other files skipped',
    ],
  })
  const json = JSON.parse((await runCommand(['check', recordings, '--json'])).stdout) as Record<
    string,
    unknown[]
  >
  expect(json).toMatchObject({
    summary: { recordings: 3, accepted: 1, partlyRefused: 1, refused: 1, skipped: 3 },
    skipped: [{ reason: 'an HTTP reply' }, {}, {}],
  })
  expect(json['files']).toHaveLength(3)
  const good = await runCommand(['check', join(recordings, '1.txt')])
  expect(good.status).toBe(0)
  const none = await runCommand(['check', await makeFolder()])
  expect([none.status, none.stderr]).toEqual([2, expect.stringContaining('has no recording')])
})

test('decides by the limits and the partner of a configuration', async () => {
  const partners =
    'partners: [{ id: plain, match: { pathPrefix: /a } }, { id: strict, match: { any: true }, unmappedFields: strict }]'
  const config = await ownFile(
    'check.yaml',
    `upstreams: { v3: { baseUrl: "http://v3.test" } }\nlimits: { maxParts: 100 }\n${partners}\n`,
  )
  const extra = body.replace('"Present"', '"Mood":1,"Present"')
  const plain = await check(extra, '--config', config)
  const strict = await check(extra, '--config', config, '--partner', 'strict')
  const codesOf = ({ document }: typeof plain): string[] => document.findings.map(({ code }) => code)
  expect(codesOf(plain)).not.toContain('ADP_UNMAPPED_FIELD')
  expect([strict.status, codesOf(strict)]).toEqual([1, expect.arrayContaining(['ADP_UNMAPPED_FIELD'])])
  const tight = await check(
    body.replace('"Present"', `"Mood":"${'x'.repeat(1_100_000)}","Present"`),
    '--config',
    config,
  )
  expect(tight.document.findings).toMatchObject([
    {
      code: 'ADP_RECORD_LIMIT',
      message: expect.stringMatching(/^Part 1 has a record of 1\.\d MiB; the limit is 1 MiB\.$/) as unknown,
    },
  ])
  const unknown = await runCommand(['check', FIXTURE, '--config', config, '--partner', 'none'])
  expect([unknown.status, unknown.stderr]).toEqual([2, expect.stringContaining('It has: plain, strict.')])
})
