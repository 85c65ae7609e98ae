import { mkdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { openRuns } from '../../../src/compare/run/read-runs.ts'
import { openRunFiles } from '../../../src/compare/run/run-files.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { readyRun, termRun } from '../report/sample-runs.ts'

const [one, two] = ['run-20260327-160000-0001', 'run-20260328-160000-0002']

const checkpointOf = (run: string) => ({
  ...{ run, startedAt: '2026-03-28T16:00:00.000Z', partner: 'acme', from: '2026-01-05', to: '2026-03-25' },
  ...{ options: 'digest', position: { kind: 'marks' as const, list: 0, fromMs: 0, days: 7 }, failed: [] },
  progress: { done: 40, total: 80 },
  counts: [
    ['verdict', ['marks', 'same'], 90],
    ['verdict', ['marks', 'differs'], 10],
    ['difference', ['Comment', 'value', 'length:10-20', 'length:1-9'], 10],
  ] as const,
})

test('readRuns returns an empty list if the folder does not exist', async () => {
  const runs = openRuns(join(await makeFolder(), 'none'))
  expect([await runs.list(), await runs.listUnfinished()]).toEqual([[], []])
})

test('readRuns returns runs with their outcomes, newest first, and a reason for each file that is not a run', async () => {
  const folder = await makeFolder()
  await writeFile(join(folder, `${one}.json`), JSON.stringify({ ...termRun(), run: one }))
  await writeFile(join(folder, 'cut.json'), '{"schema":')
  await mkdir(join(folder, 'folder.json'))
  const runs = openRuns(folder)
  expect(await runs.list()).toMatchObject([
    { run: one, summary: { outcome: 'differs', partner: 'acme', complete: true } },
    { run: 'cut', fault: expect.stringContaining('not valid JSON') as unknown },
    { run: 'folder', fault: expect.any(String) as unknown },
  ])
  await openRunFiles(folder).writeDocument(one, JSON.stringify({ ...readyRun(), run: one }))
  expect((await runs.list())[0]).toMatchObject({ run: one, summary: { outcome: 'ready' } })
})

test('readRuns returns a run with only a checkpoint, or with a later checkpoint, as unfinished with its results so far', async () => {
  const folder = await makeFolder()
  const [files, runs] = [openRunFiles(folder), openRuns(folder)]
  for (const run of [one, two]) await files.writeCheckpoint(checkpointOf(run))
  await files.writeDocument(one, JSON.stringify({ ...termRun(), run: one, complete: false }))
  const stepOf = (atS: number) => utimes(join(folder, `${one}.checkpoint.json`), atS, atS)
  await writeFile(join(folder, 'other.checkpoint.json'), '{}')
  await stepOf(Date.now() / 1_000 - 60)
  const [running, ...others] = await runs.listUnfinished()
  expect(others).toEqual([])
  expect(running).toMatchObject({
    ...{ run: two, progress: { done: 40, total: 80 } },
    document: {
      ...{ run: two, partner: 'acme', from: '2026-01-05', to: '2026-03-25', complete: false },
      ...{
        compared: 100,
        verdicts: { same: 90, differs: 10 },
        differences: [{ path: 'Comment', count: 10 }],
      },
    },
  })
  await stepOf(Date.now() / 1_000 + 60)
  expect((await runs.listUnfinished()).map(({ run }) => run)).toEqual([two, one])
})
