import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { request } from 'undici'
import { afterAll, expect, onTestFinished, test } from 'vitest'

import type { RunDocument } from '../../src/compare/run-document.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { sandboxHeaders, testNow } from '../sandbox/start-sandbox.ts'
import { type Answer, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { runCommand } from './run-command.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'markbridge-compare-'))
  onTestFinished(() => {
    rmSync(path, { recursive: true })
  })
  return path
}

const sandbox = createSandbox({ now: testNow, v2Port: 0 })
const listening = sandbox.listen()
afterAll(() => sandbox.close())

/** Returns the addresses of the sandbox for V2 and V3, and a new folder for runs. `control` changes the sandbox until the test ends. */
async function startFaces() {
  const { url, v2Url } = await listening
  const control = async (base: string, path: string, body: object): Promise<void> => {
    const set = async (method: 'PUT' | 'DELETE'): Promise<void> => {
      const reply = await request(`${base}/_sandbox/${path}`, {
        method,
        ...(method === 'PUT' && {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      })
      const text = await reply.body.text()
      if (reply.statusCode >= 300) throw new Error(text)
    }
    onTestFinished(() => set('DELETE'))
    await set('PUT')
  }
  /** Makes V2 or V3 show the first marks of the compared days differently, with `each` marks for every kind of difference. */
  const differ = async (face: 'V2' | 'V3', kinds: readonly string[], each: number): Promise<void> => {
    const marks = (await marksOf(v2Url)).slice(0, kinds.length * each)
    const rows = marks.map(({ Learner, AttendableEvent }, at) => ({
      ...{ learner: Learner, event: AttendableEvent, kind: kinds[at % kinds.length] },
    }))
    await control(url, 'differences', { face, rows })
  }
  return { url, v2Url, out: folder(), control, differ, samples: () => samplesOf(url) }
}

async function samplesOf(url: string): Promise<{ readonly learners: readonly string[] }> {
  const reply = await request(`${url}/_sandbox/samples`)
  return (await reply.body.json()) as { learners: string[] }
}

interface ShownMark {
  readonly Learner: string
  readonly AttendableEvent: string
}

async function marksOf(v2Url: string): Promise<readonly ShownMark[]> {
  const filter =
    'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-21T00:00:00Z'
  const reply = await request(`${v2Url}/V2/Attendance/AttendanceRecords`, {
    query: { $filter: filter },
    headers: sandboxHeaders,
  })
  return ((await reply.body.json()) as { value: ShownMark[] }).value
}

interface Target {
  readonly url: string
  readonly v2Url: string
  readonly out: string
}

const days = ['--since', '2026-03-02', '--until', '2026-03-20']

async function compare({ url, v2Url, out }: Target, more: readonly string[] = days, env = {}) {
  const args = ['compare', 'run', '--v2', v2Url, '--v3', url, '--dir', out, ...more]
  const result = await runCommand(args, env)
  return { ...result, document: () => JSON.parse(result.stdout) as RunDocument }
}

const GUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-/i

test('compare run finds no difference between the V2 and V3 interfaces of one sandbox', async () => {
  const faces = await startFaces()
  const { status, document, stderr } = await compare(faces, [...days, '--json', '--noise', '--registrations'])
  expect([status, stderr]).toEqual([0, ''])
  const { run, ...content } = document()
  expect(content).toMatchObject({
    ...{ kind: 'reads', partner: null, from: '2026-03-02', to: '2026-03-20', complete: true },
    ...{ differences: [], dropped: 0, skipped: 0, noise: { measured: true, records: 0, differences: [] } },
    kinds: [{ name: 'marks' }, { name: 'registrations' }],
  })
  const { same, equivalent } = content.verdicts
  expect(same).toBeGreaterThan(700)
  expect(same + equivalent).toBe(content.compared)
  expect(readdirSync(faces.out)).toEqual([`${run}.json`])
  expect(JSON.parse(readFileSync(join(faces.out, `${run}.json`), 'utf8'))).toEqual(document())
})

test('compare run finds exactly the differences that one interface of the sandbox was set to have, and prints no id', async () => {
  const faces = await startFaces()
  await faces.differ('V3', ['recordedOn', 'missing', 'code'], 10)
  const { status, stdout, stderr } = await compare(faces)
  expect([status, stderr]).toEqual([1, ''])
  expect(stdout).toMatch(/^differs +20 /m)
  expect(stdout).toMatch(/^onlyV2 +10 /m)
  expect(stdout).toMatch(/^RecordedOn +value .* 10$/m)
  expect(stdout).toMatch(
    /^Differs: V3 through .* for 30 of .*\nmarkbridge compare report --dir \S+ run-\S+ explains what each class/m,
  )
  await faces.differ('V2', ['missing'], 10)
  const other = await compare(faces)
  expect(other.stdout).toMatch(/^onlyV3 +10 /m)
  expect(stdout + other.stdout).not.toMatch(GUID)
})

test('compare run --learners compares only the learners in the file', async () => {
  const faces = await startFaces()
  const { learners } = await faces.samples()
  const file = join(faces.out, 'class.txt')
  writeFileSync(file, `# two of them\r\n${learners[0] ?? ''}\r\n\r\n${learners[1]?.toUpperCase() ?? ''}\r\n`)
  const two = await compare(faces, [...days, '--json', '--learners', file])
  expect(two.status).toBe(0)
  const all = (await compare(faces, [...days, '--json'])).document().compared
  expect(two.document().compared).toBeGreaterThan(40)
  expect(two.document().compared).toBeLessThan(all / 10)

  writeFileSync(file, `${learners[0] ?? ''}\nAnna Example\n\n12345\n`)
  const { status, stderr } = await compare(faces, [...days, '--learners', file])
  expect([status, stderr]).toEqual([2, expect.stringContaining('lines 2, 4')])
  expect(stderr).not.toMatch(/Anna|12345/)
})

test('compare run uses the addresses and rules of the partner, and names the partner in the document', async () => {
  const faces = await startFaces()
  await faces.differ('V3', ['recordedOn'], 6)
  const rule = {
    ...{ name: 'summer-time', reason: 'V3 shows local time', owner: 'integration team', path: 'RecordedOn' },
    when: { v3Class: 'time:*' },
  }
  const file = join(faces.out, 'markbridge.yaml')
  const partner = { match: { any: true }, clients: 'open', stage: 'legacy' }
  const write = (expires: string): void => {
    const acme = { ...partner, id: 'acme', compare: { rules: [{ ...rule, expires }] } }
    const upstreams = { v3: { baseUrl: faces.url }, v2: { baseUrl: faces.v2Url } }
    const beta = { ...partner, id: 'beta', match: { pathPrefix: '/beta' } }
    writeFileSync(file, JSON.stringify({ upstreams, partners: [beta, acme] }))
  }
  const args = ['compare', 'run', '--config', file, ...days, '--dir', faces.out, '--json']
  write('2099-12-31')
  const accepted = await runCommand([...args, '--partner', 'acme'])
  expect([accepted.status, accepted.stderr]).toEqual([0, ''])
  expect(JSON.parse(accepted.stdout)).toMatchObject({
    partner: 'acme',
    verdicts: { equivalent: 6, differs: 0 },
    ownRules: [{ name: 'summer-time', count: 6, expired: false }],
  })
  write('2026-01-31')
  const expired = await runCommand([...args, '--partner', 'acme'])
  expect(expired.status).toBe(1)
  expect(JSON.parse(expired.stdout)).toMatchObject({
    verdicts: { equivalent: 0, differs: 6 },
    ownRules: [{ name: 'summer-time', count: 6, expired: true }],
  })
  expect(await runCommand(args)).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/--partner: beta, acme\.\n$/) as string,
  })
})

const usages: readonly (readonly [string, readonly string[], RegExp])[] = [
  [
    'a day that does not exist',
    ['--since', '2026-02-30', '--until', '2026-03-01'],
    /must have the form YYYY-MM-DD/,
  ],
  [
    'days in the wrong order',
    ['--since', '2026-03-02', '--until', '2026-03-01'],
    /--until is before --since/,
  ],
]

test.each(usages)('compare run exits with status 2 for wrong usage: %s', async (_name, args, message) => {
  const result = await compare(
    { url: 'http://127.0.0.1:1', v2Url: 'http://127.0.0.1:1', out: folder() },
    args,
  )
  expect(result).toMatchObject({ status: 2, stdout: '' })
  expect(result.stderr).toMatch(message)
})

test('compare run sends the credentials of the sandbox to no service on another machine', async () => {
  const target = { url: 'https://v3.invalid', v2Url: 'https://v2.invalid', out: folder() }
  const { status, stderr } = await compare(target)
  expect(status).toBe(2)
  expect(stderr).toContain('Set MARKBRIDGE_SUBSCRIPTION_KEY and MARKBRIDGE_TOKEN.')
})

test('compare run stops immediately if a service rejects the credentials, and names the service', async () => {
  const faces = await startFaces()
  const { status, stderr, document } = await compare(faces, [...days, '--json'], {
    MARKBRIDGE_V3_TOKEN: 'SECRETTOKEN',
  })
  expect(status).toBe(3)
  expect(document()).toMatchObject({ complete: false })
  expect(stderr).toMatch(
    /^markbridge: V3 rejected the credentials \(401\)\. Check MARKBRIDGE_V3_SUBSCRIPTION_KEY/,
  )
  expect(stderr).not.toContain('SECRETTOKEN')
})

test('compare run counts the records of V2 as unknown if V3 cannot be reached', async () => {
  const faces = await startFaces()
  const target = { ...faces, url: 'http://127.0.0.1:1' }
  const week = ['--since', '2026-03-02', '--until', '2026-03-06', '--json']
  const { status, document, stderr } = await compare(target, week)
  expect(status).toBe(3)
  const { verdicts, compared, complete } = document()
  expect({ complete, unknown: verdicts.unknown }).toEqual({ complete: false, unknown: compared })
  expect(compared).toBeGreaterThan(0)
  expect(stderr).toMatch(
    /^markbridge: V3 was not available \(2026-03-02 to 2026-03-06\): http:\/\/127\.0\.0\.1:1\/: no server listens at this address \(ECONNREFUSED\)\..* Run the comparison again\.$/m,
  )
})

test('compare run writes a document of the records compared so far if Ctrl+C stops it', async () => {
  const faces = await startFaces()
  const v2 = await startUpstream(async (seen, response) => {
    // Interrupts the command at its second request, which gets no reply.
    if (seen.index > 0) {
      process.emit('SIGINT')
      return
    }
    const { body } = await request(faces.v2Url + seen.url, { headers: sandboxHeaders })
    await replyWith(200, await body.text())(seen, response)
  })
  const stopped = await compare({ ...faces, v2Url: v2.url }, [...days, '--json'])
  expect(stopped.status).toBe(3)
  expect(stopped.stderr).toBe(
    'markbridge: The run was stopped. The document of the run contains only the records that were compared. Run the comparison again.\n',
  )
  const { run, compared, verdicts } = stopped.document()
  expect(compared).toBeGreaterThan(0)
  expect(verdicts.same).toBe(compared)
  expect(readdirSync(faces.out)).toEqual([`${run}.json`])
  expect(readFileSync(join(faces.out, `${run}.json`), 'utf8')).not.toMatch(GUID)
})

const page = (rows: readonly unknown[], next?: string): Answer =>
  replyWith(200, { value: rows, ...(next !== undefined && { '@odata.nextLink': next }) })
/** Answers each request with a page that links to a further page, without end. */
const endless =
  (rows: readonly unknown[]): Answer =>
  (seen, response) =>
    page(rows, `http://elsewhere.invalid/V2?$skip=${seen.index}`)(seen, response)
const hostile: readonly (readonly [string, Answer, RegExp])[] = [
  ['the same next link for ever', page([], 'http://x/?$skip=1'), /leads back to a page before it/],
  ['pages without rows for ever', endless([]), /pages without rows/],
  ['rows that are not objects', page([null, 'SECRETWORD']), /has a row that is not an object/],
  ['an object that is not a collection', replyWith(200, { error: 'SECRETWORD' }), /is not a collection/],
  [
    'a login page',
    replyWith(200, '<html>SECRETWORD</html>', { 'Content-Type': 'text/html' }),
    /cannot be read/,
  ],
  ['JSON that is cut off', replyWith(200, '{"value":[{"ExternalID":"SECRETWORD'), /cannot be read/],
  ['a gigantic page', replyWith(200, `{"value":["${'SECRETWORD'.repeat(2_000_000)}"]}`), /cannot be read/],
  ['a next link without a query', page([], 'http://x/SECRETWORD'), /next link without a query/],
]

test.each(hostile)('compare run reports the fault if V2 replies with %s', async (_name, answer, message) => {
  const [v2, faces] = await Promise.all([startUpstream(answer), startFaces()])
  const args = ['--since', '2026-03-02', '--until', '2026-03-03', '--json']
  const { status, stderr, stdout, document } = await compare({ ...faces, v2Url: v2.url }, args)
  expect(status).toBe(3)
  expect(stderr).toMatch(message)
  const { verdicts, compared } = document()
  expect(verdicts.unknown).toBe(compared)
  expect(stdout + stderr).not.toContain('SECRETWORD')
})

test('compare run follows a next link on the configured host even if the link names another host', async () => {
  const v2 = await startUpstream((seen, response) =>
    (seen.index < 2 ? endless([{ ExternalID: 'x' }]) : page([]))(seen, response),
  )
  const faces = await startFaces()
  await compare({ ...faces, v2Url: `${v2.url}/base` }, ['--since', '2026-03-02', '--until', '2026-03-02'])
  expect(v2.seen.slice(0, 3).map(({ url }) => url.replace(/filter=.*/, 'filter'))).toEqual([
    '/base/V2/Attendance/AttendanceRecords?$filter',
    '/base/V2/Attendance/AttendanceRecords?$skip=0',
    '/base/V2/Attendance/AttendanceRecords?$skip=1',
  ])
})
