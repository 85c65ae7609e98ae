import { type Kysely, sql, type Transaction } from 'kysely'

import {
  dismissLost,
  dropGone,
  type JournalDatabase,
  type JournalTables,
  type LostInstance,
  ownIdentity,
  readLiveInstances,
  readLostInstances,
  readUncleanEnd,
} from '../../journal/index.ts'
import { judgeStep, type StageSetting, toSetting } from '../stage.ts'
import { addEntry, type AuditEntry, lockTrail, type NotedAction, readHead } from './audit-trail.ts'
import {
  type Db,
  hasExpired,
  type KeptStage,
  type PendingChange,
  readNow,
  readStage,
  rowsOf,
  type StageState,
} from './stage-rows.ts'

export interface Change {
  readonly partner: string
  /** The revision on which the caller based its decision. 0 if the store did not know the partner. */
  readonly expectedRevision: number
  /** The current setting, or the setting of the configuration file if the store has no setting. */
  readonly from: StageSetting
  readonly to: StageSetting
  readonly by: string
  readonly reason: string
}

/** A change that waits for instances to drain, or for an operator's approval. */
export interface ProposedChange extends Change {
  /** How long the change may wait, in milliseconds. A later commit is refused. */
  readonly forMs: number
  readonly needsApproval: boolean
  /**
   * The time before the commit, in milliseconds, in which V2 must not have received a batch that the journal may lack. 0 if no unit moves
   * to V3. If the time is above 0, a lost instance also prevents the commit.
   */
  readonly quietMs: number
}

export interface Undrained {
  readonly instance: number
  readonly host: string
  readonly pid: number
  /**
   * The number of writes in progress on the side that their unit is leaving, or `undefined` if the instance has not acknowledged the
   * change.
   */
  readonly writes: number | undefined
}

/**
 * Why units must not move to V3. `lost`: lost instances may still write to V2 for these units. `early`: the journal may lack the latest
 * batches that V2 served.
 */
type Obstacle =
  | { readonly kind: 'lost'; readonly instances: readonly LostInstance[] }
  | { readonly kind: 'early'; readonly untilMs: number; readonly nowMs: number }

/** The content of an entry of the trail, without its partner, number and time. */
type Entry = Omit<AuditEntry, 'entry' | 'atMs' | 'partner'>

/** A transaction that changes stages. Other such transactions wait until this one ends. */
interface ChangeTransaction {
  readonly db: Transaction<JournalTables>
  /** The time by the clock of the database, in milliseconds since the epoch. */
  readonly nowMs: number
  /** Adds an entry to the audit trail, with the new stage of its partner, or without a stage if the entry concerns no stage. */
  readonly add: (entry: Entry, kept?: KeptStage) => Promise<void>
}

/** Runs a change in a transaction together with the entries that it adds to the audit trail. Only one change runs at a time. */
function inChange<Result>(
  database: JournalDatabase,
  work: (change: ChangeTransaction) => Promise<Result>,
): Promise<Result> {
  return database.ask(() =>
    database.db.transaction().execute(async (db) => {
      await endWhenPaused(database, db)
      await lockTrail(database, db)
      const nowMs = await readNow(database, db)
      let head = await readHead(db)
      const add: ChangeTransaction['add'] = async (entry, kept) => {
        head = await addEntry(db, head, { ...entry, partner: kept?.state.partner ?? '', atMs: nowMs }, kept)
      }
      return work({ db, nowMs, add })
    }),
  )
}

/**
 * Makes PostgreSQL end the transaction if this process stops responding. An open transaction would block the kill switch and the renewal of
 * leases.
 */
async function endWhenPaused({ dialect }: JournalDatabase, db: Kysely<JournalTables>): Promise<void> {
  if (dialect === 'postgres') await sql`set local idle_in_transaction_session_timeout = 1000`.execute(db)
}

const stale = { kind: 'stale' } as const
const gone = { kind: 'gone' } as const

/**
 * Creates the part of the store that changes stages. Every change is a compare-and-set on the revision, and is itself an entry of the audit
 * trail. The functions throw `ADP_JOURNAL_UNAVAILABLE` and `ADP_JOURNAL_DAMAGED`.
 */
export function createStageChanges(database: JournalDatabase) {
  const change = <Result>(work: (transaction: ChangeTransaction) => Promise<Result>): Promise<Result> =>
    inChange(database, work)
  return {
    /** Changes a stage immediately, and drops a pending change. Returns `forward` for a change that must be proposed instead. */
    apply: (wanted: Change, action: 'set' | 'back' | 'guard') =>
      change(async (transaction) => {
        const kept = await readExpected(transaction, wanted)
        if (kept === 'stale') return stale
        if (judgeStep(committedOf(kept) ?? wanted.from, wanted.to).direction === 'forward')
          return { kind: 'forward' as const }
        const { partner, by, reason } = wanted
        const revision = await nextRevision(transaction, partner, kept)
        const [from, to] = [toSetting(committedOf(kept) ?? wanted.from), toSetting(wanted.to)]
        if (kept?.pending !== undefined) await dropPending(transaction, kept, kept.pending, by)
        const sinceMs = sinceOf(kept, from, to, transaction.nowMs)
        const state = { partner, revision, ...to, sinceMs, by, reason }
        await transaction.add({ by, action, from, to, revision, reason }, { state, lastRevision: revision })
        return { kind: 'applied' as const, revision }
      }),
    /** Proposes a change, which is committed once all live instances acknowledge it. Returns `pending` if another change is waiting. */
    propose: (wanted: ProposedChange) =>
      change(async (transaction) => {
        const found = await findHindrance(database, transaction, wanted)
        if (found.kind !== 'free') return found
        const { kept } = found
        const { pending } = kept ?? {}
        if (kept !== undefined && pending !== undefined)
          await dropPending(transaction, kept, pending, pending.by)
        return { kind: 'proposed' as const, revision: await keepProposal(transaction, wanted, kept) }
      }),
    /** Returns the reason why `propose` would refuse the change, or `undefined` if `propose` would accept the change. Changes no stage. */
    hindrance: (wanted: Omit<ProposedChange, 'forMs' | 'needsApproval'>) =>
      change(async (transaction) => {
        const found = await findHindrance(database, transaction, wanted)
        return found.kind === 'free' ? undefined : found
      }),
    /**
     * Approves the change of another operator, which may then wait for another `forMs`. Returns `own` if the same operator proposed the
     * change, or `gone` if the change was withdrawn or dropped or has expired.
     */
    approve: (
      partner: string,
      revision: number,
      { by, reason, forMs }: Pick<ProposedChange, 'by' | 'reason' | 'forMs'>,
    ) =>
      change(async (transaction) => {
        const kept = await readPending(transaction, partner, revision)
        if (kept?.pending.needsApproval !== true) return gone
        if (kept.pending.by === by) return { kind: 'own' as const }
        const pending = { ...kept.pending, needsApproval: false, expiresMs: transaction.nowMs + forMs, forMs }
        await addEnd(transaction, kept, { action: 'approve', by, reason }, { ...kept, pending })
        return { kind: 'approved' as const }
      }),
    /** Commits a pending change if it has not expired and every live instance acknowledged it without writes in progress on the wrong side. */
    commit: (partner: string, revision: number) =>
      change(async (transaction) => {
        const kept = await readPending(transaction, partner, revision)
        if (kept === undefined || kept.pending.needsApproval) return gone
        const { pending } = kept
        const instances = await findUndrained(database, transaction, partner, revision)
        if (instances.length > 0) return { kind: 'undrained' as const, instances }
        // Checks for lost instances after the live instances, so that an instance whose lease ends between the two checks is not missed.
        const obstacle = await findObstacle(database, transaction, kept, {
          partner,
          quietMs: pending.quietMs,
        })
        if (obstacle !== undefined) return obstacle
        const { by, reason } = pending
        const sinceMs = sinceOf(kept, pending.from, pending, transaction.nowMs)
        const state = { partner, revision, ...toSetting(pending), sinceMs, by, reason }
        await addEnd(
          transaction,
          kept,
          { action: 'commit', by, reason },
          { ...kept, state, pending: undefined },
        )
        return { kind: 'committed' as const }
      }),
    /** Withdraws a pending change. Does nothing if the change is already over. */
    withdraw: (partner: string, revision: number, by: string, reason: string) =>
      change(async (transaction) => {
        const kept = await readPending(transaction, partner, revision)
        if (kept === undefined) return
        await addEnd(transaction, kept, { action: 'withdraw', by, reason }, { ...kept, pending: undefined })
      }),
    /**
     * Records an operator's declaration that a lost instance is off. The store assumes that this instance relayed unrecorded writes until
     * now. Returns `live` if the instance holds its lease, or `unknown` if no lost instance has this number.
     */
    dismiss: (instance: number, by: string, reason: string) =>
      change(async ({ db, add }) => {
        const lost = await dismissLost(db, database, instance)
        if (lost === undefined) {
          const live = await readLiveInstances(db, database)
          const isLive = live.some((one) => one.instance === instance)
          return { kind: isLive ? ('live' as const) : ('unknown' as const) }
        }
        const { host, pid } = lost
        const text = `instance ${instance} (${host}, process ${pid}) is off: ${reason}`
        await add({ ...aboutNoStage, action: 'dismiss', by, reason: text })
        return { kind: 'dismissed' as const, ...lost }
      }),
    /** Adds an operator's action that changes no stage to the trail. The entry names no partner, because the entries of a partner define its stage. */
    recordAction: (action: NotedAction, by: string, what: string) =>
      change(({ add }) => add({ ...aboutNoStage, action, by, reason: what })),
  }
}

const aboutNoStage = { from: undefined, to: undefined, revision: 0 } as const

/** Ends the expired pending changes of partners. Waits for a commit that is in progress. */
export function expireChanges(database: JournalDatabase, partners: readonly string[]): Promise<void> {
  return inChange(database, async (transaction) => {
    for (const partner of partners) {
      const kept = await readStage(transaction.db, partner)
      if (kept?.pending === undefined || !hasExpired(kept.pending, transaction.nowMs)) continue
      await dropPending(transaction, kept, kept.pending, kept.pending.by)
    }
  })
}

function dropPending(
  { add, nowMs }: ChangeTransaction,
  kept: KeptStage,
  pending: PendingChange,
  by: string,
): Promise<void> {
  const { from, revision } = pending
  const [action, reason] = hasExpired(pending, nowMs)
    ? (['expire', 'it was not committed in time'] as const)
    : (['withdraw', 'another change came first'] as const)
  return add({ by, action, from, to: toSetting(pending), revision, reason }, { ...kept, pending: undefined })
}

/**
 * Returns a revision that no instance has acknowledged. If entries of the trail were lost, instances may know higher revisions than the
 * trail, and their acknowledgements must not count for another change.
 */
async function nextRevision(
  { db }: ChangeTransaction,
  partner: string,
  kept: KeptStage | undefined,
): Promise<number> {
  const [known] = await rowsOf(
    db,
    sql<
      Record<'own' | 'pending', number | null>
    >`select max(revision) as own, max(pending_revision) as pending
      from rollout_acks where partner = ${partner}`,
  )
  return Math.max(kept?.lastRevision ?? 0, known?.own ?? 0, known?.pending ?? 0) + 1
}

const committedOf = (kept: KeptStage | undefined): StageState | undefined =>
  kept === undefined || kept.state.revision === 0 ? undefined : kept.state

/** Returns the stage on which a change is based, `stale` if it has changed since, or `undefined` if the store has no stage of the partner. */
async function readExpected(
  { db }: ChangeTransaction,
  { partner, expectedRevision }: Pick<Change, 'partner' | 'expectedRevision'>,
): Promise<KeptStage | 'stale' | undefined> {
  const kept = await readStage(db, partner)
  return (kept?.state.revision ?? 0) === expectedRevision ? kept : 'stale'
}

type KeptPending = KeptStage & { readonly pending: PendingChange }

/** Returns the stage with the pending change, or `undefined` if the change can no longer be committed. */
async function readPending(
  { db, nowMs }: ChangeTransaction,
  partner: string,
  revision: number,
): Promise<KeptPending | undefined> {
  const kept = await readStage(db, partner)
  if (kept?.pending === undefined) return undefined
  const { pending } = kept
  return pending.revision === revision && !hasExpired(pending, nowMs) ? { ...kept, pending } : undefined
}

function addEnd(
  { add }: ChangeTransaction,
  { pending }: KeptPending,
  end: Pick<AuditEntry, 'action' | 'by' | 'reason'>,
  next: KeptStage,
): Promise<void> {
  const { from, revision } = pending
  return add({ ...end, from, to: toSetting(pending), revision }, next)
}

async function keepProposal(
  transaction: ChangeTransaction,
  change: ProposedChange,
  kept: KeptStage | undefined,
): Promise<number> {
  const { partner, by, reason, forMs, needsApproval, quietMs } = change
  const revision = await nextRevision(transaction, partner, kept)
  const committed = committedOf(kept)
  const [from, to] = [toSetting(committed ?? change.from), toSetting(change.to)]
  const given = { by, reason, expiresMs: transaction.nowMs + forMs, forMs, needsApproval, quietMs }
  const pending = { ...to, from, revision, ...given }
  const state = committed ?? { partner, revision: 0, ...from, sinceMs: 0, by: '', reason: '' }
  await transaction.add(
    { by, action: 'propose', from, to, revision, reason },
    { state, lastRevision: revision, pending },
  )
  return revision
}

/** Returns the time since which the partner is at the target stage of a change: now, or an earlier time if the stage does not change. */
const sinceOf = (kept: KeptStage | undefined, from: StageSetting, to: StageSetting, nowMs: number): number =>
  (from.stage === to.stage ? committedOf(kept)?.sinceMs : undefined) ?? nowMs

/** Returns why the change cannot be proposed now, or `free` if it can. */
async function findHindrance(
  database: JournalDatabase,
  transaction: ChangeTransaction,
  wanted: Omit<ProposedChange, 'forMs' | 'needsApproval'>,
) {
  const kept = await readExpected(transaction, wanted)
  if (kept === 'stale') return stale
  const { pending } = kept ?? {}
  if (pending !== undefined && !hasExpired(pending, transaction.nowMs))
    return { kind: 'pending' as const, pending }
  return (await findObstacle(database, transaction, kept, wanted)) ?? { kind: 'free' as const, kept }
}

/**
 * Returns why units must not move to V3 now, or `undefined` if they may. `dropGone` first records instances whose process has ended. If
 * `quietMs` is 0, the function returns `undefined` without a check.
 */
async function findObstacle(
  database: JournalDatabase,
  { db, nowMs }: Pick<ChangeTransaction, 'db' | 'nowMs'>,
  kept: KeptStage | undefined,
  { partner, quietMs }: Pick<ProposedChange, 'partner' | 'quietMs'>,
): Promise<Obstacle | undefined> {
  if (quietMs === 0) return undefined
  const own = ownIdentity()
  await dropGone(db, database, own)
  const instances = await readLostInstances(db, database, own)
  if (instances.length > 0) return { kind: 'lost', instances }
  const untilMs = quietUntil(committedOf(kept), await readUnrecorded(db, partner), quietMs)
  return untilMs > nowMs ? { kind: 'early', untilMs, nowMs } : undefined
}

/**
 * Returns the time, by the clock of the database, until which a client may resend a batch that V2 received without the journal's knowledge.
 * No unit may move to V3 before that time. `committed` is `undefined` if the partner still has the stage with which it began.
 */
export function quietUntil(
  committed: Pick<StageState, 'stage' | 'sinceMs'> | undefined,
  {
    notedMs = -Infinity,
    killedMs = -Infinity,
    lostMs = -Infinity,
  }: Awaited<ReturnType<typeof readUnrecorded>>,
  quietMs: number,
): number {
  // At `legacy` batches may be relayed without an entry in the journal, so the time counts from the beginning of `shadow`.
  const shadowMs = committed?.stage === 'shadow' ? committed.sinceMs : -Infinity
  // An instance that lost its lease may relay batches without the journal for `quietMs`, and a client may resend such a batch for another
  // `quietMs`.
  return Math.max(shadowMs, notedMs, killedMs, lostMs + quietMs) + quietMs
}

/**
 * Reads when batches of a partner may have been relayed to V2 unrecorded, by the clock of the database. `notedMs` is the time of the last
 * batch that an instance reported. Until `killedMs` a killed instance may have relayed batches without reporting them. After `lostMs` an
 * instance that does not renew its lease may relay batches for as long as it runs without the journal.
 */
export async function readUnrecorded(db: Db, partner: string) {
  const [noted] = await rowsOf(db, sql<{ atMs: number }>`select at_ms as "atMs" from rollout_unrecorded where partner = ${partner}`) // prettier-ignore
  return {
    notedMs: noted?.atMs,
    killedMs: await readUncleanEnd(db, 'killed'),
    lostMs: await readUncleanEnd(db, 'lost'),
  }
}

type Acknowledged = Pick<Undrained, 'instance' | 'writes'>

async function findUndrained(
  database: JournalDatabase,
  { db }: ChangeTransaction,
  partner: string,
  revision: number,
): Promise<readonly Undrained[]> {
  // Takes a lock on the instances, so that an instance that registers later reads the changes of this transaction.
  if (database.dialect === 'postgres') {
    // Fails after 500 ms if a process stalls while it renews its lease, because the kill switch `back` waits for this transaction.
    await sql`set local lock_timeout = '500ms'`.execute(db)
    await sql`lock table journal_instances in share mode`.execute(db)
  }
  const live = await readLiveInstances(db, database)
  const { rows } = await sql<Acknowledged>`select instance, writes_v2 + writes_v3 as writes from rollout_acks
    where partner = ${partner} and pending_revision = ${revision}`.execute(db)
  return live.flatMap(({ instance, host, pid }) => {
    const writes = rows.find((one) => one.instance === instance)?.writes
    return writes === 0 ? [] : [{ instance, host, pid, writes }]
  })
}
