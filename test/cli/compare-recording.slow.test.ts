import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import type { RunDocument } from '../../src/compare/run-document.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/index.ts'
import { startFaces } from '../e2e/support/compared-faces.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { batchOf, batchPath } from '../support/batch-request.ts'
import { loadFixtures } from '../e2e/support/fixture.ts'
import { startCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const env = { RECORDING_KEY: '0d'.repeat(32) }
const credentials = { authorization: 'Bearer sandbox', 'ocp-apim-subscription-key': 'sandbox' }
const sealed = ['--key', 'env:RECORDING_KEY']

/** The folder with recordings of the V2 interface of the sandbox: a batch, and a read of one day. */
let folder: string
let sandbox: Sandbox
let url: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'recordings-compare-'))
  sandbox = createSandbox({ port: 0 })
  ;({ url } = await sandbox.listen())
  expect(await record(url, 'sealed', send)).toContain('2 of 2 exchange(s) recorded')
})
afterAll(async () => {
  await sandbox.close()
  await rm(folder, { recursive: true, force: true })
})

/** Runs `record`, which relays the requests of `act` to V2 and stores them in the folder `form`. Returns the output of the command. */
async function record(v2: string, form: string, act: (relay: string) => Promise<void>): Promise<string> {
  const out = join(folder, form)
  const recording = startCli(['record', '--v2', v2, '--out', out, '--port', '0', ...sealed], env)
  await act(/record ready (\S+)/.exec(await recording.until(/ready \S+\n/))?.[1] ?? '')
  expect(await recording.stop()).toBe(0)
  return (await recording.ended()).stdout
}

const learners: string[] = []

async function send(relay: string): Promise<void> {
  const fixture = (await loadFixtures()).find(({ name }) => name === 'class-register')
  const type = fixture?.request.headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  const headers = { ...credentials, 'content-type': type }
  const body = fixture?.request.body ?? Buffer.alloc(0)
  learners.push(...[...body.toString().matchAll(/"Learner":\s*"([^"]+)"/g)].map(([, id = '']) => id))
  const batch = await request(`${relay}/V2/Attendance/$batch`, { method: 'POST', headers, body })
  expect(batch.statusCode).toBe(200)
  await batch.body.dump()
  const days = 'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart le 2026-03-02T23:59:59Z'
  const query = `$filter=${encodeURIComponent(days)}`
  const read = await request(`${relay}/V2/Attendance/AttendanceRecords?${query}`, { headers: credentials })
  expect(read.statusCode).toBe(200)
  await read.body.dump()
}

const run = (form: string, ...args: string[]) =>
  runCommand(
    ['compare', 'run', '--recording', join(folder, form), '--dir', join(folder, 'runs'), ...args],
    env,
  )
const effects = async (): Promise<string> => {
  const { body } = await request(`${url}/_sandbox/effects`)
  return body.text()
}

describe('the command compare run --recording', () => {
  it("compares the replies of V2 with the adapter's replies, and calls no service", async () => {
    const [before, { status, stdout, stderr }] = [await effects(), await run('sealed', ...sealed, '--json')]
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'recording',
      complete: true,
      // The three records that V2 refused are skipped, because only a POST would show whether V3 refuses them too.
      ...{ offered: 30, compared: 27, dropped: 0, skipped: 3 },
      verdicts: { same: 0, equivalent: 27, differs: 0, onlyV2: 0, onlyV3: 0, unknown: 0 },
      differences: [],
    })
    expect(status).toBe(0)
    expect(stderr).toMatch(/1 recorded read\(s\) were not compared\. .*--v3/)
    expect(await effects()).toBe(before)
  })

  it('writes a report without personal data', async () => {
    await run('sealed', ...sealed)
    const names = await readdir(join(folder, 'runs'))
    expect(names.length).toBeGreaterThan(0)
    const texts = await Promise.all(names.map((name) => readFile(join(folder, 'runs', name), 'utf8')))
    expect(learners.length).toBeGreaterThan(20)
    expect(learners.filter((id) => texts.join().includes(id))).toEqual([])
  })

  it('compares recorded reads with V3, and posts nothing', async () => {
    const before = await effects()
    const { stdout, stderr } = await run('sealed', ...sealed, '--json', '--v3', url)
    const { kinds } = JSON.parse(stdout) as RunDocument
    const reads = kinds.find(({ name }) => name === 'readFilter')?.verdicts
    expect({ reads, stderr }).toMatchObject({ reads: { differs: 0, onlyV2: 0, onlyV3: 0 }, stderr: '' })
    expect((reads?.same ?? 0) + (reads?.equivalent ?? 0)).toBeGreaterThan(10)
    expect(await effects()).toBe(before)
  })

  it('compares recorded reads and writes with V3, and skips records that changed since the recording', async () => {
    const faces = await startFaces()
    const { v3Url, v2Url, mark, samples, put } = faces
    const recorded = await record(v2Url, 'all', async (relay) => {
      const get = async (path: string): Promise<void> => {
        const reply = await request(`${relay}${path}`, { headers: sandboxHeaders })
        await reply.body.dump()
      }
      const marks = '/V2/Attendance/AttendanceRecords'
      const write = async (...records: object[]): Promise<string> => {
        const { headers, body } = batchOf(records)
        const all = { ...sandboxHeaders, ...headers }
        const reply = await request(`${relay}${batchPath}`, { method: 'POST', headers: all, body })
        return reply.body.text()
      }
      await write(mark(0), mark(1), mark(2), mark(3, { SchoolAttendanceCode: samples.events[0] }))
      // The batch above contains a record that V2 refuses, with the id of an event as its code. This batch corrects mark 1.
      const reply = await write(mark(1, { Comment: 'corrected' }))
      const [, id = ''] = /"ExternalID":"([^"]+)"/.exec(reply) ?? []
      await get(`${marks}(${id})`)
      await get(`${marks}(00000000-0000-4000-8000-00000000dead)`)
      await get(`${marks}(${id})/Comment`)
      await get('/V2/LearnerRegistations?expand=Enrolments,BoarderStatuses,PartTimeRecords,UPNHistory')
    })
    expect(recorded).toContain('6 of 6 exchange(s) recorded')
    const result = async () => {
      const { stdout, stderr } = await run('all', ...sealed, '--json', '--v3', v3Url)
      expect(stderr).toBe('')
      const { offered, compared, dropped, skipped, verdicts, kinds } = JSON.parse(stdout) as RunDocument
      expect([compared + dropped + skipped, Object.values(verdicts).reduce((sum, count) => sum + count, 0)]).toEqual([offered, compared]) // prettier-ignore
      return { skipped, ...Object.fromEntries(kinds.map(({ name, verdicts: own }) => [name, Object.fromEntries(Object.entries(own).filter(([, count]) => count > 0))])) } // prettier-ignore
    }
    const learners = samples.learners.length
    const registrations = { registrations: { equivalent: expect.any(Number) as unknown } }
    expect(learners).toBeGreaterThan(3)
    expect(await result()).toMatchObject({
      skipped: 2,
      marks: { same: 3 },
      readKey: { same: 1, equivalent: 1 },
      ...registrations,
    })
    // Makes V3 show mark 0 with another code, and writes mark 1 again after the recording.
    await put('differences', {
      face: 'V3',
      rows: [{ learner: samples.learners[0], event: samples.events[0], kind: 'code' }],
    })
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    const later = await fetch(`${v2Url}/V2/Attendance/AttendanceRecords`, {
      method: 'POST',
      headers: { ...sandboxHeaders, 'Content-Type': 'application/json' },
      body: JSON.stringify(mark(1, { Comment: 'later' })),
    })
    expect(later.status).toBe(201)
    expect(await result()).toMatchObject({
      marks: { same: 1, differs: 1, unknown: 1 },
      readKey: { same: 1, unknown: 1 },
    })
    // If V3 cannot be reached, every mark counts as unknown.
    const gone = await run('all', ...sealed, '--json', '--v3', 'http://127.0.0.1:9')
    const { kinds } = JSON.parse(gone.stdout) as RunDocument
    expect(kinds.find(({ name }) => name === 'marks')?.verdicts).toMatchObject({ same: 0, unknown: 3 })
  })

  it.each<[string, string[], RegExp]>([
    ['sealed', [], /Recordings are encrypted/],
    ['sealed', ['--v2', 'http://127.0.0.1:1'], /'--recording <dir>' cannot be used with option '--v2 <url>'/],
    [
      'sealed',
      ['--since', '2026-01-01', '--noise'],
      /'--recording <dir>' cannot be used with option '--since <day>'/,
    ],
    ['nothing', [], /nothing cannot be read/],
    ['runs', [], /has no recording/],
  ])('refuses the recording "%s" with the flags %j', async (form, args, text) => {
    const { status, stderr } = await run(form, ...args)
    expect([status, stderr]).toEqual([2, expect.stringMatching(text)])
  })

  it('exits with status 2 if its flags name neither days nor a recording', async () => {
    const { status, stderr } = await runCommand(['compare', 'run', '--v2', url, '--v3', url])
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(/--since <day> and --until <day>, or --recording/),
    ])
  })
})
