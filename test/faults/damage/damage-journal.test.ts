import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { createRandom } from '../../../src/sandbox/random.ts'
import { createFileDamage, damageKinds } from './damage-journal.ts'

/** Creates a database with two commits, and a copy of it from after the first commit. */
function startFile() {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-damage-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'journal.db')
  const write = (n: number): void => {
    const database = new DatabaseSync(file)
    database.exec(`CREATE TABLE IF NOT EXISTS kept (n INTEGER); INSERT INTO kept VALUES (${n})`)
    database.close()
  }
  const damage = createFileDamage(file, createRandom(1, 'damage'))
  write(1)
  damage.makeCopy()
  write(2)
  const read = (): unknown[] => {
    const database = new DatabaseSync(file, { readOnly: true })
    const rows = database.prepare('SELECT n FROM kept').all()
    database.close()
    return rows.map(({ n }) => n)
  }
  return { file, damage, read }
}

test('the injected damage deletes, renames or empties the journal files, or restores an older copy', () => {
  for (const kind of ['deleted', 'renamed', 'emptied'] as const) {
    const { damage, read } = startFile()
    expect(read()).toEqual([1, 2])
    damage.strike(kind)
    expect(read, kind).toThrow()
  }
  const { damage, read } = startFile()
  damage.strike('oldCopy')
  expect(read()).toEqual([1])
})

test('the injected damage flips bits without changing the length of the file', () => {
  const { file, damage } = startFile()
  const before = readFileSync(file)
  damage.strike('flipped')
  const after = readFileSync(file)
  expect([after.length, after.equals(before)]).toEqual([before.length, false])
  expect(damageKinds).toContain('flipped')
})
