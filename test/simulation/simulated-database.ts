import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

import { type HighWaterMark, type HighWaterFile, openHighWaterFile } from '../../src/journal/high-water.ts'
import type { Actor, World } from './world.ts'

export interface StoreFault {
  /** `refused`: the request was not executed. `unanswered`: the request was executed, and its reply was lost. */
  readonly kind: 'refused' | 'unanswered'
}

/** Draws the delay and the fault of each request to the database. */
export interface StoreWeather {
  delayMs(): number
  faultOf(what: 'query' | 'commit', actor: Actor): StoreFault | undefined
}

/** A statement that is prepared once per process. Positional parameters and rows as arrays halve the cost of running it. */
interface Prepared {
  readonly statement: StatementSync
  /** The names of the parameters in their order, without the `$`. */
  readonly parameters: readonly string[]
  readonly columns: readonly string[]
}

/** The maximum number of prepared statements. Some texts contain batch numbers, so the number would grow without a limit. */
const MAX_PREPARED = 1_000

/** The only database connection of this process. Histories run one after another and share its prepared statements. */
const connection = new DatabaseSync(':memory:')
const prepared = new Map<string, Prepared>()

export function prepare(text: string): Prepared {
  const known = prepared.get(text)
  if (known !== undefined) return known
  if (prepared.size >= MAX_PREPARED) prepared.clear()
  const parameters: string[] = []
  const places = text.replace(/\$(\w+)/g, (_whole, name: string) => {
    parameters.push(name)
    return '?'
  })
  const statement = connection.prepare(places)
  statement.setReturnArrays(true)
  const made = { statement, parameters, columns: statement.columns().map(({ name }) => name) }
  prepared.set(text, made)
  return made
}

type ParameterValues = (name: string) => unknown

export function execute({ statement, parameters, columns }: Prepared, given: ParameterValues): Executed {
  const values = parameters.map((name) => given(name) as SQLInputValue)
  if (columns.length === 0) return { rows: [], changes: Number(statement.run(...values).changes) }
  const found = statement.all(...values) as unknown as readonly (readonly unknown[])[]
  return { rows: found.map((row) => toObject(columns, row)), changes: 0 }
}

interface Executed {
  readonly rows: Row[]
  readonly changes: number
}

export type Row = Record<string, unknown>

function toObject(columns: readonly string[], values: readonly unknown[]): Row {
  const row: Row = {}
  for (let at = 0; at < columns.length; at += 1) row[columns[at] ?? ''] = values[at]
  return row
}

export const byNumber =
  (values: readonly unknown[]): ParameterValues =>
  (name) =>
    values[Number(name) - 1]

/** The savepoints: the start of a history, the copy that a failover restores, and the running transaction. */
type Savepoint = 'history' | 'copy' | 'change'

const openSavepoint = (point: Savepoint): unknown => prepare(`savepoint ${point}`).statement.run()
const releaseSavepoint = (point: Savepoint): unknown => prepare(`release ${point}`).statement.run()
const rollBackTo = (point: Savepoint): void => {
  prepare(`rollback to ${point}`).statement.run()
  releaseSavepoint(point)
}

/** Runs statements that change the database with which every history begins. */
export function changeInitialState(text: string): void {
  connection.exec(text)
}

/** A row of the high-water mark: the number of commits of the instances that share a slot. */
interface SlotRow {
  readonly slot: number
  readonly commits: number
}

/** A database in memory that all processes of a history share. A process that dies loses only its uncommitted transaction. */
export class SimulatedDatabase {
  private readonly world: World
  private readonly weather: StoreWeather
  private holder: TransactionLock | undefined
  /** True while a transaction runs. Reads over the only connection then show its uncommitted changes. */
  isChanging = false
  private waiting: { readonly hold: TransactionLock; readonly enter: () => void }[] = []
  private hasCopy = false
  private isFailoverPending = false
  private readonly lastCommits = new Map<string, SlotRow>()
  /** The processes that lost a confirmed commit. Empty once the operator has accepted the loss. */
  readonly processesWithLoss = new Set<string>()
  hasLostCommits = false
  /** Called when a process commits although the database has lost its earlier commits. */
  onCommitAfterLoss: (who: string) => void = () => undefined
  private readonly marks: HighWaterFile[] = []

  /** If `isKept` is true, all later histories begin with the rows that are written to this database. */
  constructor(world: World, weather: StoreWeather, { isKept: isTemplate = false } = {}) {
    this.world = world
    this.weather = weather
    if (!isTemplate) openSavepoint('history')
  }

  /** Waits until no other transaction runs. */
  lock(actor: Actor): Promise<TransactionLock> {
    return new Promise((resolve) => {
      const hold = { actor }
      const enter = (): void => {
        this.holder = hold
        resolve(hold)
      }
      if (this.holder === undefined) enter()
      else this.waiting.push({ hold, enter })
    })
  }

  /** Rolls back an uncommitted transaction and lets the next one begin. */
  unlock(hold: TransactionLock | undefined): void {
    if (hold === undefined || this.holder !== hold) return
    this.rollback()
    if (this.isFailoverPending) this.failOver()
    this.holder = undefined
    const next = this.waiting.shift()
    if (next === undefined) return
    // The next holder may be another process, so its work continues in a separate event.
    this.holder = next.hold
    this.world.after(next.hold.actor, 0, next.enter)
  }

  /** Rolls back the transaction of a process that died. */
  abandon(actor: Actor): void {
    this.waiting = this.waiting.filter(({ hold }) => hold.actor !== actor)
    if (this.holder?.actor === actor) this.unlock(this.holder)
  }

  begin(): void {
    if (this.isChanging) throw new Error('a transaction within a transaction')
    openSavepoint('change')
    this.isChanging = true
  }

  commit(): void {
    if (!this.isChanging) throw new Error('no transaction is active')
    releaseSavepoint('change')
    this.isChanging = false
  }

  rollback(): void {
    if (this.isChanging) rollBackTo('change')
    this.isChanging = false
  }

  /** Copies the current commits, like a standby or a backup that receives no later commits. */
  makeCopy(): void {
    if (this.isChanging) return
    if (this.hasCopy) releaseSavepoint('copy')
    openSavepoint('copy')
    this.hasCopy = true
  }

  /** Replaces the database by the copy once no transaction runs. */
  failOver(): void {
    if (!this.hasCopy) return
    this.isFailoverPending = this.isChanging
    if (this.isFailoverPending) return
    prepare('rollback to copy').statement.run()
    for (const [name, row] of this.lastCommits) if (this.isMissing(row)) this.processesWithLoss.add(name)
    this.hasLostCommits ||= this.processesWithLoss.size > 0
    this.world.log(
      () => `the store is as it was before: commits of ${[...this.processesWithLoss].join(' ')} are lost`,
    )
  }

  /** Accepts the loss, so that no process remembers lost commits. */
  acceptLoss(): void {
    this.processesWithLoss.clear()
    this.lastCommits.clear()
  }

  recordCommit(name: string, row: SlotRow): void {
    this.lastCommits.set(name, row)
    // A failover lost this commit before the reply to the commit arrived.
    if (this.hasCopy && this.isMissing(row)) {
      this.processesWithLoss.add(name)
      this.hasLostCommits = true
    } else if (this.processesWithLoss.has(name)) this.onCommitAfterLoss(name)
  }

  private isMissing({ slot, commits }: SlotRow): boolean {
    const rows = this.all<SlotRow>('select slot, commits from journal_commits')
    return rows.some((row) => row.slot === slot && row.commits < commits)
  }

  openMark(path: string, mark: HighWaterMark): HighWaterFile {
    const file = openHighWaterFile(path, mark)
    this.marks.push(file)
    return file
  }

  /**
   * Runs `act` when the request has reached the database, and resolves with the result when the reply has arrived. With `isLocal` there is
   * no network, so a failed request was not executed.
   */
  async request<Result>(
    actor: Actor,
    what: 'query' | 'commit',
    act: () => Result,
    { isLocal = false } = {},
  ): Promise<Result> {
    await this.world.wait(actor, this.weather.delayMs())
    const fault = this.weather.faultOf(what, actor)
    if (fault?.kind === 'refused' || (fault !== undefined && isLocal)) throw new StoreFailure('refused')
    const result = act()
    // The reply to a query needs no separate delay, because the next request is delayed.
    if (what === 'commit' || fault !== undefined) await this.world.wait(actor, this.weather.delayMs())
    if (fault?.kind === 'unanswered') throw new StoreFailure('unanswered')
    return result
  }

  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows the rows of its query
  all<Row>(sqlText: string, ...values: readonly unknown[]): readonly Row[] {
    return execute(prepare(sqlText), byNumber(values)).rows as Row[]
  }

  /** Deletes everything that the history wrote. */
  close(): void {
    for (const mark of this.marks) mark.close()
    this.rollback()
    rollBackTo('history')
  }
}

/** The right to run the only transaction. */
export interface TransactionLock {
  readonly actor: Actor
}

/** A request to the database that failed in transit. */
export class StoreFailure extends Error {
  readonly kind: 'refused' | 'unanswered'

  constructor(kind: 'refused' | 'unanswered') {
    super(kind)
    this.kind = kind
  }
}
