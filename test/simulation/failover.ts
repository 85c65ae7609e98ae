import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Random } from '../../src/sandbox/random.ts'
import { adoptStore } from '../../src/journal/adopt.ts'
import type { MarkFilePlace } from '../../src/journal/high-water.ts'
import type { Store } from '../../src/journal/store.ts'
import type { Checks } from './checks.ts'
import type { Finding } from './sent.ts'
import type { SimulatedDatabase } from './simulated-database.ts'
import { type Actor, createActor, START_MS, type World } from './world.ts'

interface FailoverOptions {
  readonly world: World
  readonly random: Random
  readonly outside: Actor
  readonly database: SimulatedDatabase
  readonly checks: Checks
  readonly instances: number
  /** Processes end, and those that run by then know only of their own commits. */
  readonly hasKills: boolean
  readonly openStore: (actor: Actor, markFile: MarkFilePlace | undefined) => Store
  /** True once nothing fails any longer. */
  readonly isCalm: () => boolean
  /** Ends all instances as an operator does. */
  readonly stopAll: () => void
  readonly startAll: () => void
  readonly killAll: () => void
}

const DAY_MS = 86_400_000

let folder: string | undefined

/** Where the one machine of a history keeps its mark. */
function makeMark(): string {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), 'markbridge-simulation-'))
    process.once('exit', () => rmSync(made, { recursive: true, force: true }))
    folder = made
  }
  const path = join(folder, 'mark')
  rmSync(path, { force: true })
  return path
}

/** What holds whatever a database has lost: what may not, clients and other instances could not know of. */
const lasting: ReadonlySet<Finding['kind']> = new Set([
  'trusted',
  'lost',
  'lent',
  'leftover',
  'crash',
  'ledger',
])

/**
 * A standby that lags, or a disk that lies, takes the place of the database. Instances that lost commits must notice, and an operator then
 * stops all of them, accepts the loss and starts them again.
 */
export class Failover {
  readonly markFile: MarkFilePlace | undefined
  private readonly options: FailoverOptions
  private isComing = false
  /** From the notice until all instances start again. */
  isRepairing = false

  constructor(options: FailoverOptions) {
    this.options = options
    // Marks of several machines cannot be told from the mark of the last one.
    this.markFile = options.instances === 1 ? { path: makeMark(), required: false } : undefined
    options.database.onTrusted = (who) =>
      options.checks.find('trusted', who, 'goes on although commits of its own are gone')
  }

  /** A copy is made, and takes the place of the database a little later. Meanwhile all processes may end, and start again. */
  readonly begin = (): void => {
    const { world, random, outside, database, isCalm, hasKills, killAll } = this.options
    if (this.isComing) return
    this.isComing = true
    database.keepCopy()
    const endsAll = hasKills && random.chance(0.3)
    if (endsAll) killAll()
    world.at(outside, random.below(endsAll ? 4_000 : 1_000), () => {
      this.isComing = false
      if (!this.isRepairing && !isCalm()) database.failOver()
    })
  }

  /** An instance says that its journal is damaged. */
  readonly onDamage = (who: string): void => {
    const { world, random, outside } = this.options
    if (this.isRepairing) return
    this.isRepairing = true
    world.tell(() => `${who} notices that its journal is damaged`)
    world.at(outside, random.below(1_000), () => {
      this.options.stopAll()
      const operator = createActor('operator')
      world.at(operator, 10, () => void this.adopt(operator))
    })
  }

  private async adopt(operator: Actor): Promise<void> {
    const { world, database, openStore, startAll } = this.options
    try {
      await adoptStore(openStore(operator, this.markFile), { keys: [] }, DAY_MS, START_MS + world.nowMs)
      world.tell(() => 'the loss is accepted')
      database.accept()
      this.isRepairing = false
      startAll()
    } catch {
      world.at(operator, 300, () => void this.adopt(operator))
    }
  }

  /** True for what a database that lost commits does not excuse. */
  readonly counts = ({ kind, of }: Finding): boolean => {
    if (!this.options.database.hasLost || lasting.has(kind)) return true
    const { instances, hasKills, checks } = this.options
    return kind === 'doubled' && instances === 1 && !hasKills && checks.isDoubledInARow(of)
  }
}
