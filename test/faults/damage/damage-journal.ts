import { setTimeout as delay } from 'node:timers/promises'

import type { Random } from '../../../src/sandbox/random.ts'
import { runCli } from '../../cli/run-cli.ts'
import type { Finding } from '../check/check-history.ts'
import type { Life } from '../supervisor/run-life.ts'
import { createFileDamage, type DamageKind, damageKinds } from './damage-file.ts'

/** Damages a journal between two lives of its adapter, and while one lives. */
export interface JournalDamage {
  /** To be called when a process is gone, before the next one starts. */
  readonly betweenLives: (begin: () => Life, place: AdapterPlace) => Promise<void>
  count(): number
  /** Journals that were used as if nothing had happened to them. */
  findings(): readonly Finding[]
}

/** Where the adapter listens, and its configuration. */
export interface AdapterPlace {
  readonly url: string
  readonly configFile: string
}

/** Share of the lives after which the journal is damaged, and of the damages that come while a process lives. */
const DAMAGE_SHARE = 0.6
const RUNNING_SHARE = 0.4
/** Clients go on for this time before and after the damage. */
const LIFE_MS = 400
/** Only an adapter that notices nothing takes so long, on any machine. */
const NOTICE_MS = 30_000

/** Prepares to damage the journal in `file`. */
export function createJournalDamage(file: string, random: Random): JournalDamage {
  const damage = createFileDamage(file, random)
  const findings: Finding[] = []
  let count = 0
  const find = (kind: DamageKind, because: string): void => {
    findings.push({ kind: 'trusted', of: `damage ${count} (${kind})`, because })
  }
  /** Bits may have flipped where nothing is kept, so that nothing shows. */
  const mustShow = (kind: DamageKind): boolean => kind !== 'flipped'
  const strikeAtRest = async (begin: () => Life, kind: DamageKind): Promise<void> => {
    damage.strike(kind)
    const life = begin()
    if ((await life.ready) !== undefined) {
      if (mustShow(kind)) find(kind, 'the adapter started')
      await delay(LIFE_MS)
      life.kill('SIGKILL')
    } else if (!/is damaged|cannot be opened/.test((await life.ended).log)) {
      find(kind, `the adapter ended: ${(await life.ended).log}`)
    }
    await life.ended
  }
  const strikeRunning = async (begin: () => Life, kind: DamageKind, url: string): Promise<void> => {
    const life = begin()
    if ((await life.ready) === undefined) find(kind, `the adapter did not start: ${(await life.ended).log}`)
    await delay(LIFE_MS)
    damage.strike(kind)
    if (mustShow(kind) && !(await becomesUnready(url))) find(kind, '/readyz stayed 200')
    await delay(LIFE_MS)
    life.kill('SIGKILL')
    await life.ended
  }
  return {
    betweenLives: async (begin, { url, configFile }) => {
      const isRunning = random.chance(RUNNING_SHARE)
      const kind = random.pick(damageKinds)
      // A copy that is made now and brought back now is the journal itself.
      const isUndamaged = kind === 'oldCopy' && !isRunning
      if (!isUndamaged && (count === 0 || !random.chance(DAMAGE_SHARE))) damage.keepCopy()
      count += 1
      if (isRunning) await strikeRunning(begin, kind, url)
      else await strikeAtRest(begin, kind)
      const adopted = await runCli(['journal', 'adopt', '--yes', '--config', configFile])
      if (adopted.status !== 0) find(kind, `journal adopt ended with ${adopted.status}: ${adopted.stderr}`)
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
