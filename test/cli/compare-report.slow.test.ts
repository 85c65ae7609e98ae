import { lstat, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { readyRun, termRun } from '../compare/report/sample-runs.ts'
import { runCommand } from './run-command.ts'

let folder = ''
const id = 'run-20260327-160000-9f3c'

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-runs-'))
  await writeFile(join(folder, `${id}.json`), JSON.stringify(termRun()))
  const ready = { ...readyRun(), run: 'run-20260301-160000-0001', endedAt: '2026-03-01T16:10:00Z' }
  await writeFile(join(folder, `${ready.run}.json`), JSON.stringify(ready))
  await writeFile(join(folder, 'run-cut.json'), JSON.stringify(termRun()).slice(0, 500))
})
afterAll(async () => rm(folder, { recursive: true, force: true }))

const report = async (...args: string[]) => runCommand(['compare', 'report', '--dir', folder, ...args])

test('compare report lists the runs, newest first, and gives a reason for each file that is not a run', async () => {
  const { status, stdout } = await report('--list')
  expect(status).toBe(0)
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/).slice(0, 6)),
  ).toEqual([
    ['run', 'partner', 'from', 'to', 'outcome', 'complete'],
    [id, 'acme', '2026-01-05', '2026-03-25', 'differs', 'yes'],
    ['run-20260301-160000-0001', 'acme', '2026-01-05', '2026-03-25', 'ready', 'yes'],
    ['run-cut', expect.stringMatching(/^not a run: .*not valid JSON/)],
  ])
})

test('compare report --force replaces an existing file or link, but never the file behind the link', async () => {
  const [file, link] = [join(folder, 'open.html'), join(folder, 'link.html')]
  await writeFile(file, 'old', { mode: 0o644 })
  await symlink(file, link)
  expect((await report('latest', '--out', link, '--force')).status).toBe(0)
  expect(await readFile(file, 'utf8')).toBe('old')
  expect((await lstat(link)).mode & 0o170777).toBe(0o100600)
  expect(await report('latest', '--out', file)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining(
      'exists already. Nothing was written. Name another file, or replace the file with --force',
    ) as unknown,
  })
  expect((await report('latest', '--out', file, '--force')).status).toBe(0)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const names = await readdir(folder)
  const none = await report('latest', '--out', '/dev/null')
  expect([none.status, none.stderr]).toEqual([2, expect.stringContaining('/dev/null is not a regular file')])
  expect(await readdir(folder)).toEqual(names)
})

test('compare report writes a file that only its owner can read', async () => {
  const file = join(folder, 'report.html')
  const { status, stdout, stderr } = await report('latest', '--out', file)
  expect([status, stdout, stderr]).toEqual([0, '', `markbridge: the report is in ${file}\n`])
  expect(await readFile(file, 'utf8')).toMatch(/^<!doctype html>/)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('compare report prints a run, named by id or path, as JSON with rounded or exact counts', async () => {
  const [byId, exact] = await Promise.all([
    report(id, '--format', 'json'),
    report(join(folder, `${id}.json`), '--format', 'json', '--exact'),
  ])
  const counts = [byId, exact].map(({ stdout }) => {
    const { differences } = JSON.parse(stdout) as { differences: { count: unknown }[] }
    return differences.map(({ count }) => count).slice(-2)
  })
  expect(counts).toEqual([
    [5, 5],
    [3, 2],
  ])
})

test.each([
  [[], 'No run is named'],
  [['nowhere'], 'no such file'],
  [['run-cut'], 'not valid JSON'],
  [['latest', '--format', 'pdf'], "argument 'pdf' is invalid"],
  [['latest', '--out', '/nowhere/report.html'], '/nowhere/report.html cannot be written: no such file'],
])('compare report exits with status 2 for the arguments %j', async (args, message) => {
  const { status, stderr } = await report(...args)
  expect(status).toBe(2)
  expect(stderr).toContain(message)
})
