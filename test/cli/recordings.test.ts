import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { findRecordings } from '../../src/cli/recordings/read-recordings.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-'))
  await mkdir(join(folder, 'b', '.git'), { recursive: true })
  for (const name of ['c.txt', 'a.txt', '.hidden', 'b/2.txt', 'b/.git/config'])
    await writeFile(join(folder, name), name)
})
afterAll(() => rm(folder, { recursive: true }))

test('a folder stands for the files in it and below, in order, without hidden ones, however it is named', async () => {
  const here = `./${relative(process.cwd(), folder)}`
  for (const path of [folder, `${folder}/`, here]) {
    const { isFolder, files } = await findRecordings(path)
    expect([isFolder, files.map(({ name }) => relative(folder, name))]).toEqual([
      true,
      ['a.txt', 'b/2.txt', 'c.txt'],
    ])
  }
  const { isFolder, files } = await findRecordings(join(folder, '.hidden'))
  expect([isFolder, (await files[0]?.read())?.toString()]).toEqual([false, '.hidden'])
})
