import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, beforeEach, expect, it } from 'vitest'

import { createStageFile, stageFileOf } from '../../src/app/stage-file.ts'
import { parseConfig } from '../../src/config/index.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-stages-'))
})
afterEach(() => rm(folder, { recursive: true }))

it.each([
  ['sqlite:./data/journal.db', undefined, './data/journal.db.stages'],
  ['sqlite:./data/journal.db', '/var/stages', '/var/stages'],
  ['postgres://db/markbridge', undefined, undefined],
  ['postgres://db/markbridge', '/var/stages', '/var/stages'],
])('with the journal %s and the file %s: %s', (url, stateFile, expected) => {
  const { journal, rollout } = parseConfig({
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } },
    journal: { url },
    rollout: stateFile === undefined ? {} : { stateFile },
  })
  expect(stageFileOf(journal, rollout)).toBe(expected)
})

it('replaces the text as a whole, for its owner alone, and leaves no draft', async () => {
  const path = join(folder, 'new', 'journal.db.stages')
  const file = createStageFile(path)
  expect(await file.load()).toBeUndefined()
  await file.save('first')
  await file.save('second')
  expect([await file.load(), await readdir(join(folder, 'new'))]).toEqual(['second', ['journal.db.stages']])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

it('rejects where it cannot be written or read, and then what was there stays', async () => {
  const blocked = join(folder, 'file')
  await writeFile(blocked, 'no folder')
  const file = createStageFile(join(blocked, 'journal.db.stages'))
  await expect(file.save('text')).rejects.toThrow()
  await expect(file.load()).rejects.toThrow()
  expect(await readFile(blocked, 'utf8')).toBe('no folder')
})

it('keeps nothing without a path', async () => {
  const file = createStageFile(undefined)
  await file.save('text')
  expect(await file.load()).toBeUndefined()
})
