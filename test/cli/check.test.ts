import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { beforeAll, expect, test } from 'vitest'

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

test('check prints the records and their V3 bodies for a valid batch', async () => {
  const { status, stdout } = await runCommand(['check', FIXTURE])
  expect(status).toBe(0)
  expect(stdout).toMatch(
    /^fixtures\/class-register\/body\.txt: \d+ bytes, 30 records in 1 changeset, 0 refused\n/,
  )
  expect(stdout).not.toContain('ExternalID')
  const shown = await runCommand(['check', FIXTURE, '--show'])
  expect(shown.stdout.match(/^part \d+ \(Content-ID \d+\): \{"ExternalID":"0{8}-/gm)).toHaveLength(30)
  expect(stdout.split('\n').slice(1, 3)).toEqual([expect.stringContaining('ids'), 'no findings'])
})

test('check exits with status 1 for a broken batch, and prints the offset of the fault and its remedy', async () => {
  const cut = body.slice(0, 3_000)
  const { status, document } = await check(cut)
  expect(status).toBe(1)
  expect(document.sound).toBe(false)
  expect(document.findings.at(-1)).toMatchObject({ code: 'ADP_TRUNCATED', offset: 3_000 })
  expect(document.findings.at(-1)?.remedy).toContain('Send the body whole')
})

test.each<{ finding: string; edit: (text: string) => string; args?: string[]; status?: number }>([
  {
    finding: 'idsDiffer',
    edit: (text) => text,
    args: ['--boundary', 'batch_00000000-0000-4000-8000-000000000000'],
  },
  { finding: 'convertedFields', edit: (text) => text.replace('"Present":true', '"Present":"True"') },
  { finding: 'unmappedFields', edit: (text) => text.replace('"Present"', '"Mood":1,"Present"') },
  { finding: 'ADP_FIELD', edit: (text) => text.replace('"Absent":false', '"Absent":"no"'), status: 1 },
])('check reports the finding $finding', async ({ finding, edit, args = [], status = 0 }) => {
  const result = await check(edit(body), ...args)
  expect(result.document.findings.map(({ code }) => code)).toContain(finding)
  expect(result.status).toBe(status)
})

test.each(['body-utf16', 'body-utf16-without-mark', 'line-ends-cr', 'line-ends-cr-cr-lf'])(
  'check prints why the fixture %s has no delimiter line',
  async (name) => {
    const path = `fixtures/${name}/request.http`
    const whole = await readFile(new URL(`../../${path}`, import.meta.url))
    const cause = name.startsWith('body') ? 'UTF-16' : name.endsWith('lf') ? 'CR CR LF' : 'CR alone'
    const doubled = await ownFile('doubled.http', whole.toString('latin1').replaceAll('\r\n', '\r\r\n'))
    const checked = name === 'line-ends-cr-cr-lf' ? [path, doubled] : [path]
    for (const file of checked) {
      const { status, stdout } = await runCommand(['check', file])
      expect([status, stdout]).toEqual([1, expect.stringContaining(cause)])
      expect(stdout).toContain('error ADP_BODY')
    }
  },
)

test('check reads a file that holds a whole HTTP request', async () => {
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

test('check treats a file as a request rather than a preamble even if its request line has a typing error', async () => {
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

test('check reports by how many bytes Content-Length differs from the length of the body', async () => {
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

test('check reads standard input if the file is -', async () => {
  const { status, stdout } = await runCli(['check', '-'], {}, body)
  expect(status).toBe(0)
  expect(stdout).toMatch(/^standard input: \d+ bytes, 30 records in 1 changeset, 0 refused\n/)
  const json = await runCommand(['check', '-', '--json'], {}, body)
  expect(JSON.parse(json.stdout)).toMatchObject({ file: '-', sound: true })
  const nothing = await runCommand(['check', '-'], {}, '')
  expect([nothing.status, nothing.stdout]).toEqual([1, expect.stringContaining('The file is empty.')])
})

test('check applies the limits and the partner of the given configuration', async () => {
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
      message: expect.stringMatching(/1\.\d MiB.* 1 MiB/) as unknown,
    },
  ])
  const unknown = await runCommand(['check', FIXTURE, '--config', config, '--partner', 'none'])
  expect([unknown.status, unknown.stderr]).toEqual([2, expect.stringContaining('(plain, strict)')])
})

/** A batch as `curl --data` sends it, which removes all line ends from the file. */
const JOINED = `--B1Content-Type: multipart/mixed; boundary=C1--C1Content-Type: application/http${'POST AttendanceRecords HTTP/1.1{"Present":true}--C1'.repeat(4)}----B1--`

test.each([
  ['', 'The file is empty.'],
  [Buffer.from('\ufeff--batch_1\r\n', 'utf16le'), 'The file is UTF-16, which no V2 client sends.'],
  [Buffer.from('--batch_1\r\n', 'utf16le'), 'The file is UTF-16, which no V2 client sends.'],
  ['{"Present":true}', 'The file is JSON, not a batch.'],
  ['hello\n', 'The file is not a batch: no line begins with a boundary.'],
  [JOINED, 'The file has no line ends, so no line of it is a boundary.'],
])(
  'check and send print what kind of file they got if the file is not a batch (sample %#)',
  async (content, message) => {
    const path = await ownFile('body.txt', '')
    await writeFile(path, content)
    const { status, stdout } = await runCommand(['check', path, '--json'])
    expect([status, (JSON.parse(stdout) as Document).findings]).toMatchObject([
      1,
      [{ code: 'notABatch', message }],
    ])
    expect(await runCommand(['send', path, '--to', 'http://127.0.0.1:1'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(
        `^markbridge: ${path}: ${message.replaceAll('.', '\\.')} [A-Z].+\\.\n$`,
      ) as unknown,
    })
  },
)

test('check of a folder prints the number of findings and of checked files', async () => {
  const { status, stdout } = await runCommand(['check', 'fixtures/ids-differ-refused', '--json'])
  expect([status, JSON.parse(stdout)]).toEqual([
    1,
    expect.objectContaining({ folder: 'fixtures/ids-differ-refused', files: 1, found: 1 }),
  ])
  const folder = dirname(await ownFile('a.txt', body))
  for (let n = 0; n < 1_001; n += 1) await writeFile(join(folder, `b${n}.txt`), '')
  const many = await runCommand(['check', folder])
  expect(many.status).toBe(1)
  expect(many.stdout).toContain(
    '1,000 files (the first of 1,002 files by name), 999 refused as a whole, 30 records, 0 refused\n',
  )
  expect(many.stdout).toMatch(/^error notABatch +999 +999 +\S+b0\.txt$/m)
  expect(many.stdout).toMatch(/\nmarkbridge check <file> says why a file is refused\.\n$/)
  await mkdir(join(folder, 'empty'))
  expect(await runCommand(['check', join(folder, 'empty')])).toMatchObject({
    status: 1,
    stdout: expect.stringContaining(join(folder, 'empty')) as unknown,
  })
})
