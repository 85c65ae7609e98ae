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
  /** True if processes may end. The processes that run by then know only their own commits. */
  readonly hasKills: boolean
  readonly openStore: (actor: Actor, markFile: MarkFilePlace | undefined) => Store
  /** True once there are no more faults. */
  readonly isCalm: () => boolean
  /** Ends all instances, like an operator. */
  readonly stopAll: () => void
  readonly startAll: () => void
  readonly killAll: () => void
}

const DAY_MS = 86_400_000

let folder: string | undefined

/** Creates the file in which the only machine of a history stores its high-water mark. */
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

/** The checks that hold whatever a database has lost, because clients and other instances could not know of the loss. */
const lasting: ReadonlySet<Finding['kind']> = new Set([
  'trusted',
  'lost',
  'lent',
  'leftover',
  'crash',
  'ledger',
])

/**
 * A standby that lags, or a disk that loses confirmed writes, takes the place of the database. Instances that lost commits must notice. An
 * operator then stops all of them, accepts the loss and starts them again.
 */
export class Failover {
  readonly markFile: MarkFilePlace | undefined
  private readonly options: FailoverOptions
  private isComing = false
  /** True from the detection of a loss until all instances start again. */
  isRepairing = false

  constructor(options: FailoverOptions) {
    this.options = options
    // The marks of several machines cannot be told apart from the mark of the last machine.
    this.markFile = options.instances === 1 ? { path: makeMark(), required: false } : undefined
    options.database.onTrusted = (who) =>
      options.checks.find('trusted', who, 'goes on although commits of its own are gone')
  }

  /** Makes a copy that takes the place of the database a little later. Meanwhile all processes may end and start again. */
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

  /** Handles the report of an instance that its journal is damaged. */
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

  /** Returns true for a finding that is not excused by lost commits of the database. */
  readonly counts = ({ kind, of }: Finding): boolean => {
    if (!this.options.database.hasLost || lasting.has(kind)) return true
    const { instances, hasKills, checks } = this.options
    return kind === 'doubled' && instances === 1 && !hasKills && checks.isDoubledInARow(of)
  }
}
