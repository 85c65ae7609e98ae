import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, beforeEach, expect, it } from 'vitest'

import { createStageFile, stageFileOf } from '../../src/app/stages.ts'
import { parseConfig } from '../../src/config/index.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-stages-'))
})
afterEach(() => rm(folder, { recursive: true }))

const journalOf = (url: string, stateDir?: string) =>
  parseConfig({
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } },
    journal: { url, ...(stateDir === undefined ? {} : { stateDir }) },
  }).journal

const besideJournal = (path: string) => createStageFile(journalOf(`sqlite:${path}`))

it.each([
  ['sqlite:./data/journal.db', undefined, './data/journal.db.stages'],
  ['postgres://db/markbridge', undefined, undefined],
  ['postgres://db/markbridge', '/var/markbridge', '/var/markbridge/journal.stages'],
])('stageFileOf, for the journal %s with the stateDir %s, returns the path %s', (url, stateDir, expected) => {
  expect(stageFileOf(journalOf(url, stateDir))).toBe(expected)
})

it('the stage file is replaced as a whole, is readable only by its owner, and leaves no temporary file', async () => {
  const path = join(folder, 'new', 'journal.db.stages')
  const file = besideJournal(join(folder, 'new', 'journal.db'))
  expect(await file.load()).toBeUndefined()
  await file.save('first')
  await file.save('second')
  expect([await file.load(), await readdir(join(folder, 'new'))]).toEqual(['second', ['journal.db.stages']])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

it('the stage file rejects each save and load if its path cannot be used, and changes no other file', async () => {
  const blocked = join(folder, 'file')
  await writeFile(blocked, 'no folder')
  const file = besideJournal(join(blocked, 'journal.db'))
  await expect(file.save('text')).rejects.toThrow()
  await expect(file.load()).rejects.toThrow()
  expect(await readFile(blocked, 'utf8')).toBe('no folder')
})

it('the stage file stores nothing if it has no path', async () => {
  const file = createStageFile(journalOf('postgres://db/markbridge'))
  await file.save('text')
  expect(await file.load()).toBeUndefined()
})
