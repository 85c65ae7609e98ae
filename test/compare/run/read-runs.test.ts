import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { openRuns } from '../../../src/compare/run/read-runs.ts'
import { writeRun } from '../../../src/compare/run/run-files.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { readyRun, termRun } from '../report/sample-runs.ts'

const one = 'run-20260327-160000-0001'

test('openRuns returns an empty list if the folder does not exist', async () => {
  expect(await openRuns(join(await makeFolder(), 'none')).list()).toEqual([])
})

test('openRuns lists the runs with their outcomes, newest first, and a reason for each file that is not a run', async () => {
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
  await writeRun(folder, one, JSON.stringify({ ...readyRun(), run: one }))
  expect((await runs.list())[0]).toMatchObject({ run: one, summary: { outcome: 'ready' } })
})
