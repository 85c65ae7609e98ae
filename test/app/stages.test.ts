import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, beforeEach, expect, it } from 'vitest'

import { createStageFile, expectOwnStageFile, stageFileOf } from '../../src/app/stages.ts'
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

/** The file beside an SQLite journal. */
const besideJournal = (path: string) => createStageFile(journalOf(`sqlite:${path}`))

it.each([
  ['sqlite:./data/journal.db', undefined, './data/journal.db.stages'],
  ['postgres://db/markbridge', undefined, undefined],
  ['postgres://db/markbridge', '/var/markbridge', '/var/markbridge/journal.stages'],
])('with the journal %s and the folder %s: %s', (url, stateDir, expected) => {
  expect(stageFileOf(journalOf(url, stateDir))).toBe(expected)
})

it('replaces the text as a whole, for its owner alone, and leaves no draft', async () => {
  const path = join(folder, 'new', 'journal.db.stages')
  const file = besideJournal(join(folder, 'new', 'journal.db'))
  expect(await file.load()).toBeUndefined()
  await file.save('first')
  await file.save('second')
  expect([await file.load(), await readdir(join(folder, 'new'))]).toEqual(['second', ['journal.db.stages']])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

it('rejects where it cannot be written or read, and then what was there stays', async () => {
  const blocked = join(folder, 'file')
  await writeFile(blocked, 'no folder')
  const file = besideJournal(join(blocked, 'journal.db'))
  await expect(file.save('text')).rejects.toThrow()
  await expect(file.load()).rejects.toThrow()
  expect(await readFile(blocked, 'utf8')).toBe('no folder')
})

it('keeps nothing without a path', async () => {
  const file = createStageFile(journalOf('postgres://db/markbridge'))
  await file.save('text')
  expect(await file.load()).toBeUndefined()
})

it('is that of one journal: another one neither reads it nor replaces it', async () => {
  const path = join(folder, 'journal.stages')
  const [one, other] = ['postgres://ann:secret@db/one', 'postgres://bert@db/other'].map((url) =>
    createStageFile(journalOf(url, folder)),
  )
  await one?.save('stages of one')
  const isAnothers = { code: 'ADP_CONFIGURATION', message: expect.stringContaining(path) as unknown }
  await expect(other?.load()).rejects.toMatchObject(isAnothers)
  await expect(other?.save('stages of the other')).rejects.toMatchObject(isAnothers)
  expect(await one?.load()).toBe('stages of one')
  expect(await readFile(path, 'utf8')).not.toMatch(/ann|secret|postgres/)
  await expect(expectOwnStageFile(journalOf('postgres://db/other', folder))).rejects.toMatchObject(isAnothers)
  // Another user and password, the default port and another parameter lead to the same journal.
  await expect(
    expectOwnStageFile(journalOf('postgres://carl:x@db:5432/one?application_name=x', folder)),
  ).resolves.toBeUndefined()
})

it('beside an SQLite journal moves with it', async () => {
  await besideJournal(join(folder, 'journal.db')).save('text')
  expect(await readFile(join(folder, 'journal.db.stages'), 'utf8')).toBe('text')
})
