import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { runCli } from './run-cli.ts'

const FIXTURE = 'fixtures/class-register/body.txt'
let folder: string
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
  folder = await mkdtemp(join(tmpdir(), 'markbridge-'))
  body = await readFile(new URL(`../../${FIXTURE}`, import.meta.url), 'utf8')
})
afterAll(() => rm(folder, { recursive: true }))

async function check(text: string, ...args: string[]): Promise<{ status: number; document: Document }> {
  const path = join(folder, 'body.txt')
  await writeFile(path, text)
  const { status, stdout } = await runCli(['check', path, '--json', ...args])
  return { status, document: JSON.parse(stdout) as Document }
}

test('a sound batch: its records, the V3 records they become, no error', async () => {
  const { status, stdout } = await runCli(['check', FIXTURE])
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
  { finding: 'unmappedFields', edit: (text) => text.replace('"Present"', '"Mood":1,"Present"') },
  {
    finding: 'innerHeadersIgnored',
    edit: (text) => text.replace('Accept-Charset', 'Authorization: bearer x\r\nAccept-Charset'),
  },
  {
    finding: 'wrongContentLength',
    edit: (text) => text.replace('Accept-Charset', 'Content-Length: 7\r\nAccept-Charset'),
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
  const head = `POST /V2/Attendance/$batch HTTP/1.1\r\nHost: adapter\r\nContent-Type: multipart/mixed; boundary=${boundary}\r\n\r\n`
  const { document } = await check(head + body)
  expect(document).toMatchObject({ sound: true, idsAgree: true, findings: [] })
  expect(document.records).toHaveLength(30)
})
