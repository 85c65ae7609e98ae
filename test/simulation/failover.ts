import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Random } from '../../src/sandbox/random.ts'
import { adoptStore } from '../../src/journal/adopt.ts'
import type { HighWaterFilePlace } from '../../src/journal/high-water.ts'
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
  /** True if processes may be killed. A process that starts later may not notice a loss, because it made no commits before. */
  readonly hasKills: boolean
  readonly openStore: (actor: Actor, highWaterFile: HighWaterFilePlace | undefined) => Store
  readonly isCalm: () => boolean
  readonly stopAll: () => void
  readonly startAll: () => void
  readonly killAll: () => void
}

const DAY_MS = 86_400_000

let folder: string | undefined

/** Returns a path for the high-water mark of a history's only machine. */
function newMarkPath(): string {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), 'markbridge-simulation-'))
    process.once('exit', () => rmSync(made, { recursive: true, force: true }))
    folder = made
  }
  const path = join(folder, 'mark')
  rmSync(path, { force: true })
  return path
}

/** The kinds of findings that lost commits do not excuse. */
const neverExcused: ReadonlySet<Finding['kind']> = new Set([
  'trusted',
  'lost',
  'lent',
  'leftover',
  'crash',
  'ledger',
])

/**
 * Replaces the database by an older copy, like a failover to a lagging standby. Instances that lost commits must notice the loss. An
 * operator then stops all instances, accepts the loss and starts the instances again.
 */
export class Failover {
  readonly highWaterFile: HighWaterFilePlace | undefined
  private readonly options: FailoverOptions
  private isCopyPending = false
  /** True from the detection of a loss until all instances start again. */
  isRepairing = false

  constructor(options: FailoverOptions) {
    this.options = options
    // A high-water file belongs to one machine, and several instances may be on several machines.
    this.highWaterFile = options.instances === 1 ? { path: newMarkPath(), required: false } : undefined
    options.database.onCommitAfterLoss = (who) =>
      options.checks.report('trusted', who, 'continues although the database has lost its commits')
  }

  /** Copies the database, and fails over to the copy a little later. Before the failover, all processes may be killed and started again. */
  readonly start = (): void => {
    const { world, random, outside, database, isCalm, hasKills, killAll } = this.options
    if (this.isCopyPending) return
    this.isCopyPending = true
    database.makeCopy()
    const endsAll = hasKills && random.chance(0.3)
    if (endsAll) killAll()
    world.after(outside, random.below(endsAll ? 4_000 : 1_000), () => {
      this.isCopyPending = false
      if (!this.isRepairing && !isCalm()) database.failOver()
    })
  }

  /** Begins the repair when an instance finds its journal damaged. */
  readonly onDamage = (who: string): void => {
    const { world, random, outside } = this.options
    if (this.isRepairing) return
    this.isRepairing = true
    world.log(() => `${who} notices that its journal is damaged`)
    world.after(outside, random.below(1_000), () => {
      this.options.stopAll()
      const operator = createActor('operator')
      world.after(operator, 10, () => void this.adopt(operator))
    })
  }

  private async adopt(operator: Actor): Promise<void> {
    const { world, database, openStore, startAll } = this.options
    try {
      await adoptStore(openStore(operator, this.highWaterFile), { keys: [] }, DAY_MS, START_MS + world.nowMs)
      world.log(() => 'the loss is accepted')
      database.acceptLoss()
      this.isRepairing = false
      startAll()
    } catch {
      world.after(operator, 300, () => void this.adopt(operator))
    }
  }

  /** Returns true for a finding that lost commits do not excuse. */
  readonly isNotExcused = ({ kind, subject }: Finding): boolean => {
    if (!this.options.database.hasLostCommits || neverExcused.has(kind)) return true
    const { instances, hasKills, checks } = this.options
    return kind === 'doubled' && instances === 1 && !hasKills && checks.isDoubledInARow(subject)
  }
}
