import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs'

import type { Random } from '../../../src/sandbox/random.ts'

/** What happens to the file of a journal. */
export const damageKinds = ['deleted', 'renamed', 'emptied', 'oldCopy', 'flipped'] as const

export type DamageKind = (typeof damageKinds)[number]

/** The files of an SQLite database, besides the mark of the journal. */
const endings = ['', '-wal', '-shm'] as const
const MAX_FLIPS = 64

/** Damages one SQLite journal. */
export interface FileDamage {
  /** Keeps a copy that `oldCopy` brings back. To be called while no process has the file open. */
  keepCopy(): void
  strike(kind: DamageKind): void
}

/** Prepares to damage the journal in `file`; all draws come from `random`. */
export function createFileDamage(file: string, random: Random): FileDamage {
  const paths = endings.map((ending) => `${file}${ending}`)
  const remove = (): void => paths.forEach((path) => rmSync(path, { force: true }))
  let renamed = 0
  const strikes: Record<DamageKind, () => void> = {
    deleted: remove,
    renamed: () => {
      renamed += 1
      for (const path of paths) if (existsSync(path)) renameSync(path, `${path}.renamed-${renamed}`)
    },
    emptied: () => {
      for (const path of paths) if (existsSync(path)) truncateSync(path)
    },
    oldCopy: () => {
      remove()
      for (const path of paths) if (existsSync(`${path}.kept`)) copyFileSync(`${path}.kept`, path)
    },
    flipped: () => {
      const [database = file, log = file] = paths
      flipBits(random.chance(0.5) && existsSync(log) ? log : database, random)
    },
  }
  return {
    keepCopy: () => {
      for (const path of paths) {
        rmSync(`${path}.kept`, { force: true })
        if (existsSync(path)) copyFileSync(path, `${path}.kept`)
      }
    },
    strike: (kind) => strikes[kind](),
  }
}

/** Flips single bits anywhere in a file, as a failing disk does. */
function flipBits(path: string, random: Random): void {
  const { size } = statSync(path)
  if (size === 0) return
  const file = openSync(path, 'r+')
  const byte = Buffer.alloc(1)
  for (let count = 1 + random.below(MAX_FLIPS); count > 0; count -= 1) {
    const at = random.below(size)
    readSync(file, byte, 0, 1, at)
    byte[0] = (byte[0] ?? 0) ^ (1 << random.below(8))
    writeSync(file, byte, 0, 1, at)
  }
  closeSync(file)
}
