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
import { setTimeout as delay } from 'node:timers/promises'

import type { Random } from '../../../src/sandbox/random.ts'
import { runCli } from '../../cli/run-cli.ts'
import type { Finding } from '../check/finding.ts'
import type { Life } from '../supervisor/run-life.ts'

export const damageKinds = ['deleted', 'renamed', 'emptied', 'oldCopy', 'flipped'] as const

export type DamageKind = (typeof damageKinds)[number]

/** The endings of the files of an SQLite database. The journal's high-water mark is in another file, which is not damaged. */
const endings = ['', '-wal', '-shm'] as const
const MAX_FLIPS = 64

export interface FileDamage {
  /** Makes the copy that the damage `oldCopy` restores. Call this while no process has the file open. */
  makeCopy(): void
  strike(kind: DamageKind): void
}

/** Prepares to damage the journal in `file`. All random choices come from `random`. */
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
    makeCopy: () => {
      for (const path of paths) {
        rmSync(`${path}.kept`, { force: true })
        if (existsSync(path)) copyFileSync(path, `${path}.kept`)
      }
    },
    strike: (kind) => strikes[kind](),
  }
}

/** Flips single bits anywhere in a file, like a failing disk. */
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

/** Damages a journal, either while an adapter runs on it or before the adapter starts. */
export interface JournalDamage {
  /**
   * Damages the journal before or while an adapter runs on it, and then adopts the journal. Call this between two processes of the adapter.
   */
  readonly betweenLives: (begin: () => Life, place: AdapterPlace) => Promise<void>
  count(): number
  /** Findings about damaged journals that an adapter used. */
  findings(): readonly Finding[]
}

export interface AdapterPlace {
  readonly url: string
  readonly configFile: string
}

/**
 * OLD_COPY_SHARE is the probability that the existing copy is kept before the journal is damaged, so that the copy grows older.
 * RUNNING_SHARE is the probability that the journal is damaged while an adapter runs.
 */
const OLD_COPY_SHARE = 0.6
const RUNNING_SHARE = 0.4
/** The time for which clients continue before and after the damage. */
const LIFE_MS = 400
/** The time within which an adapter must notice the damage, even on a slow machine. */
const NOTICE_MS = 30_000

export function createJournalDamage(file: string, random: Random): JournalDamage {
  const damage = createFileDamage(file, random)
  const findings: Finding[] = []
  let count = 0
  const report = (kind: DamageKind, because: string): void => {
    findings.push({ kind: 'trusted', of: `damage ${count} (${kind})`, because })
  }
  /** Returns false for flipped bits, which may be in unused space, where they damage nothing. */
  const mustShow = (kind: DamageKind): boolean => kind !== 'flipped'
  const strikeAtRest = async (begin: () => Life, kind: DamageKind): Promise<void> => {
    damage.strike(kind)
    const life = begin()
    if ((await life.ready) !== undefined) {
      if (mustShow(kind)) report(kind, 'the adapter started')
      await delay(LIFE_MS)
      life.kill('SIGKILL')
    } else if (!/is damaged|cannot be opened/.test((await life.ended).log)) {
      report(kind, `the adapter ended: ${(await life.ended).log}`)
    }
    await life.ended
  }
  const strikeRunning = async (begin: () => Life, kind: DamageKind, url: string): Promise<void> => {
    const life = begin()
    if ((await life.ready) === undefined) report(kind, `the adapter did not start: ${(await life.ended).log}`)
    await delay(LIFE_MS)
    damage.strike(kind)
    if (mustShow(kind) && !(await becomesUnready(url))) report(kind, '/readyz stayed 200')
    await delay(LIFE_MS)
    life.kill('SIGKILL')
    await life.ended
  }
  return {
    betweenLives: async (begin, { url, configFile }) => {
      const isRunning = random.chance(RUNNING_SHARE)
      const kind = random.pick(damageKinds)
      // A copy that is made now and restored at once would be the undamaged journal.
      const isUndamaged = kind === 'oldCopy' && !isRunning
      if (!isUndamaged && (count === 0 || !random.chance(OLD_COPY_SHARE))) damage.makeCopy()
      count += 1
      if (isRunning) await strikeRunning(begin, kind, url)
      else await strikeAtRest(begin, kind)
      const adopted = await runCli(['journal', 'adopt', '--yes', '--config', configFile])
      if (adopted.status !== 0) report(kind, `journal adopt ended with ${adopted.status}: ${adopted.stderr}`)
    },
    count: () => count,
    findings: () => findings,
  }
}

async function becomesUnready(url: string): Promise<boolean> {
  const endMs = performance.now() + NOTICE_MS
  while (performance.now() < endMs) {
    const reply = await fetch(`${url}/readyz`).catch(() => undefined)
    await reply?.body?.cancel()
    if (reply?.status === 503) return true
    await delay(20)
  }
  return false
}
