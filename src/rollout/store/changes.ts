import { type Kysely, sql, type Transaction } from 'kysely'

import { AdapterError } from '../../errors.ts'
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
import { isServedByV2, judgeStep, type StageSetting, toSetting } from '../stage.ts'
import {
  aboutTrail,
  addEntry,
  type AuditEntry,
  endOfRows,
  isWhole,
  lockHead,
  type NotedAction,
  readLast,
  writeHead,
} from './audit-trail.ts'
import {
  type Db,
  hasExpired,
  type KeptStage,
  readNow,
  type PendingChange,
  readStage,
  rowsOf,
  type StageState,
  writeStage,
} from './stage-rows.ts'

/** A change of the stage of one partner. */
export interface Change {
  readonly partner: string
  /** That the caller has decided by; 0: the store does not know the partner; `damaged`: its row is. */
  readonly expectedRevision: number | 'damaged'
  /** What the caller has decided by: the stage of the file where the store knows none. */
  readonly from: StageSetting
  readonly to: StageSetting
  readonly by: string
  readonly reason: string
}

/** A change that waits for its instances, or for an operator. */
export interface ProposedChange extends Change {
  /** How long it may wait; a commit after that is refused. */
  readonly forMs: number
  readonly needsApproval: boolean
  /** Time without a batch that may have been relayed unrecorded, and without a lost instance, before the commit; 0: no unit goes to V3. */
  readonly quietMs: number
}

/** A live instance that holds a change up. */
export interface Undrained {
  readonly instance: number
  readonly host: string
  readonly pid: number
  /** Writes under way on the side that their unit leaves; undefined: it has not acknowledged the change. */
  readonly writes: number | undefined
}

/**
 * Why no unit may go to V3 now. `lost`: instances that were lost may still send V2 writes of the units that move; `early`: the journal does
 * not know all batches of the last `quietMs` yet.
 */
type Obstacle =
  | { readonly kind: 'lost'; readonly instances: readonly LostInstance[] }
  | { readonly kind: 'early'; readonly untilMs: number; readonly nowMs: number }

/** A transaction that changes stages; others that do wait until it ends. */
interface ChangeTransaction {
  readonly db: Transaction<JournalTables>
  /** By the clock of the database. */
  readonly nowMs: number
  /** False: the end of the trail was repaired by this change. */
  readonly wasSound: boolean
  /** Adds a row to the audit trail; gives its number. */
  readonly add: (entry: Omit<AuditEntry, 'entry' | 'atMs'>) => Promise<number>
  /** `damaged`: the row is not as it was written, or is gone. */
  readonly read: (partner: string) => Promise<KeptStage | 'damaged' | undefined>
  readonly write: (kept: KeptStage) => Promise<void>
}

/**
 * Runs a change alone, with the audit trail that it adds to. `repairs`: an end of the trail that is not as it was written is replaced by the
 * end of the rows that are there, and the trail says so. Else `ADP_JOURNAL_DAMAGED`.
 */
function inChange<Result>(
  database: JournalDatabase,
  { repairs }: { readonly repairs: boolean },
  work: (change: ChangeTransaction) => Promise<Result>,
): Promise<Result> {
  const { macKey } = database
  return database.ask(() =>
    database.db.transaction().execute(async (db) => {
      await endWhenPaused(database, db)
      const found = await lockHead(database, db)
      const nowMs = await readNow(database, db)
      const isSound = found !== undefined && isWhole(macKey, found, (await readLast(db))?.entry)
      if (!isSound && !repairs) throw damagedTrail()
      let head = isSound ? found : await endOfRows(macKey, db, nowMs)
      const add: ChangeTransaction['add'] = async (entry) => {
        head = await addEntry(db, macKey.key, head, { ...entry, atMs: nowMs })
        return head.entries
      }
      if (!isSound) await add(aboutTrail('repair', 'the end of the audit trail was not as it was written'))
      const result = await work({
        db,
        nowMs,
        wasSound: isSound,
        add,
        read: (partner) => readStage(db, macKey, partner),
        write: (kept) => writeStage(db, macKey, kept),
      })
      if (head !== found) await writeHead(db, macKey.key, head)
      return result
    }),
  )
}

/** A process that is stopped in the middle must not keep the kill switch, or the renewal of leases, waiting. */
async function endWhenPaused({ dialect }: JournalDatabase, db: Kysely<JournalTables>): Promise<void> {
  if (dialect === 'postgres') await sql`set local idle_in_transaction_session_timeout = 1000`.execute(db)
}

const damagedTrail = (): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    'The end of the audit trail of stages is not as it was written. No stage was changed. List the trail with markbridge rollout history; ' +
      'markbridge rollout back works all the same, and notes in the trail that its end was repaired.',
  )

const stale = { kind: 'stale' } as const
const gone = { kind: 'gone' } as const

/**
 * Creates the part of the store that changes stages. Every change is a compare-and-set on the revision, and its row of the audit trail is
 * written in the same transaction. Errors: `ADP_JOURNAL_UNAVAILABLE`, `ADP_JOURNAL_DAMAGED`.
 */
export function createStageChanges(database: JournalDatabase) {
  const change = <Result>(
    work: (transaction: ChangeTransaction) => Promise<Result>,
    repairs = false,
  ): Promise<Result> => inChange(database, { repairs }, work)
  return {
    /** Replaces an end of the trail that is not as it was written by that of its rows; false: there was nothing to repair. */
    repair: () => change(({ wasSound }) => Promise.resolve(!wasSound), true),
    /**
     * Changes a stage at once, and drops a pending change; `forward`: it moves units to V3, so it has to be proposed. With `damaged` as the
     * expected revision this is what repairs a row.
     */
    apply: (wanted: Change, action: 'set' | 'back' | 'guard') =>
      change(async (transaction) => {
        const kept = await readExpected(transaction, wanted)
        if (kept === 'stale') return stale
        if (isForward(wanted, kept)) return { kind: 'forward' as const }
        const { partner, by, reason } = wanted
        const { nowMs } = transaction
        // Higher than any that an instance knows, whatever the damaged row and the trail have lost.
        const least = wanted.expectedRevision === 'damaged' ? Math.floor(nowMs / 1_000) : 0
        const revision = Math.max(least, kept?.lastRevision ?? 0) + 1
        const [from, to] = [toSetting(committedOf(kept) ?? wanted.from), toSetting(wanted.to)]
        if (kept?.pending !== undefined) await dropPending(transaction, partner, kept.pending, by)
        const entry = await transaction.add({ by, partner, action, from, to, revision, reason })
        const state = { partner, revision, ...to, sinceMs: sinceOf(kept, from, to, nowMs), by, reason }
        await transaction.write({ state, lastRevision: revision, pending: undefined, entry })
        return { kind: 'applied' as const, revision }
      }, true),
    /** Makes a change known that is to be committed once all live instances have acknowledged it; `pending`: another one waits. */
    propose: (wanted: ProposedChange) =>
      change(async (transaction) => {
        const found = await findHindrance(database, transaction, wanted)
        if (found.kind !== 'free') return found
        const { kept } = found
        const { pending } = kept ?? {}
        if (pending !== undefined) await dropPending(transaction, wanted.partner, pending, pending.by)
        return { kind: 'proposed' as const, revision: await keepProposal(transaction, wanted, kept) }
      }),
    /** What `propose` would answer if it does not make the change known; undefined: it would. Changes no stage. */
    hindrance: (wanted: Omit<ProposedChange, 'forMs' | 'needsApproval'>) =>
      change(async (transaction) => {
        const found = await findHindrance(database, transaction, wanted)
        return found.kind === 'free' ? undefined : found
      }),
    /**
     * Lets a change of another operator go on, for `forMs` from now. `own`: the operator who has proposed it cannot approve it; `gone`: it
     * was withdrawn, dropped, or has expired.
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
        await writeEnd(transaction, kept, { action: 'approve', by, reason }, { ...kept, pending })
        return { kind: 'approved' as const }
      }),
    /** Commits a pending change, if it has not expired and every live instance has acknowledged it without writes under way. */
    commit: (partner: string, revision: number) =>
      change(async (transaction) => {
        const kept = await readPending(transaction, partner, revision)
        if (kept === undefined || kept.pending.needsApproval) return gone
        const { pending } = kept
        const instances = await findUndrained(database, transaction, partner, revision)
        if (instances.length > 0) return { kind: 'undrained' as const, instances }
        // Later: one whose lease has ended since must not be missed.
        const obstacle = await findObstacle(database, transaction, kept, {
          partner,
          quietMs: pending.quietMs,
        })
        if (obstacle !== undefined) return obstacle
        const { by, reason } = pending
        const sinceMs = sinceOf(kept, pending.from, pending, transaction.nowMs)
        const state = { partner, revision, ...toSetting(pending), sinceMs, by, reason }
        await writeEnd(
          transaction,
          kept,
          { action: 'commit', by, reason },
          { ...kept, state, pending: undefined },
        )
        return { kind: 'committed' as const }
      }),
    /** Does nothing where the change is gone already. */
    withdraw: (partner: string, revision: number, by: string, reason: string) =>
      change(async (transaction) => {
        const kept = await readPending(transaction, partner, revision)
        if (kept === undefined) return
        await writeEnd(transaction, kept, { action: 'withdraw', by, reason }, { ...kept, pending: undefined })
      }),
    /**
     * Records in the audit trail that an operator declares a lost instance off; until now it may have relayed writes unrecorded. `live`: the
     * instance holds its lease; `unknown`: no instance of this number is lost.
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
        await add({ ...aboutTrail('dismiss', text), by })
        return { kind: 'dismissed' as const, ...lost }
      }),
    /** Adds to the audit trail what an operator did that changes no stage: a row about no partner, since those about one say what its stage is. */
    note: (action: NotedAction, by: string, what: string) =>
      change(async ({ add }) => {
        await add({ ...aboutTrail(action, what), by })
      }),
  }
}

/**
 * Ends the pending changes of partners that have expired. A commit that came before is finished then, and one that comes later finds none.
 * Error: `ADP_JOURNAL_DAMAGED` where the end of the trail is: no commit can come then.
 */
export function expireChanges(database: JournalDatabase, partners: readonly string[]): Promise<void> {
  return inChange(database, { repairs: false }, async (transaction) => {
    for (const partner of partners) {
      const kept = await transaction.read(partner)
      if (kept === undefined || kept === 'damaged' || kept.pending === undefined) continue
      if (!hasExpired(kept.pending, transaction.nowMs)) continue
      const entry = await dropPending(transaction, partner, kept.pending, kept.pending.by)
      await transaction.write({ ...kept, pending: undefined, entry })
    }
  })
}

/** Adds to the trail that a pending change is not made; gives the number of the row. */
function dropPending(
  { add, nowMs }: ChangeTransaction,
  partner: string,
  pending: PendingChange,
  by: string,
): Promise<number> {
  const { from, revision } = pending
  const [action, reason] = hasExpired(pending, nowMs)
    ? (['expire', 'it was not committed in time'] as const)
    : (['withdraw', 'another change came first'] as const)
  return add({ by, partner, action, from, to: toSetting(pending), revision, reason })
}

/** The stage that was committed last; undefined: the store has none of the partner yet. */
const committedOf = (kept: KeptStage | undefined): StageState | undefined =>
  kept === undefined || kept.state.revision === 0 ? undefined : kept.state

/** Units that move forward would move while instances still serve by the old stage. */
function isForward({ from, to, expectedRevision }: Change, kept: KeptStage | undefined): boolean {
  // What a damaged row said is not known: V2 serves every unit then.
  if (expectedRevision === 'damaged') return !isServedByV2(to.stage)
  return judgeStep(committedOf(kept) ?? from, to).direction === 'forward'
}

/** The row that a change was decided by; `stale`: it is another one by now. Undefined: none, or one that is damaged. */
async function readExpected(
  { read, wasSound }: ChangeTransaction,
  { partner, expectedRevision }: Change,
): Promise<KeptStage | 'stale' | undefined> {
  const kept = await read(partner)
  // Its rows may be gone with the end of the trail.
  if (kept === 'damaged' || (kept === undefined && !wasSound && expectedRevision === 'damaged'))
    return expectedRevision === 'damaged' ? undefined : 'stale'
  return (kept?.state.revision ?? 0) === expectedRevision ? kept : 'stale'
}

type KeptPending = KeptStage & { readonly pending: PendingChange }

/** The row of a partner with this pending change, while it can be committed. */
async function readPending(
  { read, nowMs }: ChangeTransaction,
  partner: string,
  revision: number,
): Promise<KeptPending | undefined> {
  const kept = await read(partner)
  if (kept === 'damaged' || kept?.pending === undefined) return undefined
  const { pending } = kept
  return pending.revision === revision && !hasExpired(pending, nowMs) ? { ...kept, pending } : undefined
}

/** Writes what becomes of a pending change, and the row of the trail. */
async function writeEnd(
  { add, write }: ChangeTransaction,
  { pending }: KeptPending,
  end: Pick<AuditEntry, 'action' | 'by' | 'reason'>,
  next: KeptStage,
): Promise<void> {
  const { from, revision } = pending
  const entry = await add({ ...end, partner: next.state.partner, from, to: toSetting(pending), revision })
  await write({ ...next, entry })
}

async function keepProposal(
  { add, write, nowMs }: ChangeTransaction,
  change: ProposedChange,
  kept: KeptStage | undefined,
): Promise<number> {
  const { partner, by, reason, forMs, needsApproval, quietMs } = change
  const revision = (kept?.lastRevision ?? 0) + 1
  const committed = committedOf(kept)
  const [from, to] = [toSetting(committed ?? change.from), toSetting(change.to)]
  const given = { by, reason, expiresMs: nowMs + forMs, forMs, needsApproval, quietMs }
  const pending = { ...to, from, revision, ...given }
  const entry = await add({ by, partner, action: 'propose', from, to, revision, reason })
  const state = committed ?? { partner, revision: 0, ...from, sinceMs: 0, by: '', reason: '' }
  await write({ state, lastRevision: revision, pending, entry })
  return revision
}

/** Since when the partner is at the stage that it goes to. */
const sinceOf = (kept: KeptStage | undefined, from: StageSetting, to: StageSetting, nowMs: number): number =>
  (from.stage === to.stage ? committedOf(kept)?.sinceMs : undefined) ?? nowMs

/** Why a change cannot be proposed now; `free`: nothing hinders it. */
async function findHindrance(
  database: JournalDatabase,
  transaction: ChangeTransaction,
  wanted: Omit<ProposedChange, 'forMs' | 'needsApproval'>,
) {
  const kept = await readExpected(transaction, wanted)
  if (kept === 'stale' || wanted.expectedRevision === 'damaged') return stale
  const { pending } = kept ?? {}
  if (pending !== undefined && !hasExpired(pending, transaction.nowMs))
    return { kind: 'pending' as const, pending }
  return (await findObstacle(database, transaction, kept, wanted)) ?? { kind: 'free' as const, kept }
}

/** Looks for one; `dropGone` notes until when instances of which the process is gone may have relayed batches unrecorded. */
async function findObstacle(
  database: JournalDatabase,
  { db, nowMs }: ChangeTransaction,
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
 * Until when a batch may come again that V2 was given without the journal's knowledge, if it comes again within `quietMs`: before that no
 * unit may go to V3. Pure; in the time of the database. `committed` is undefined where the stage is that of the file.
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
  // Before `shadow` nothing is recorded.
  const shadowMs = committed?.stage === 'shadow' ? committed.sinceMs : -Infinity
  // An instance that lost its lease may do without the journal for as long as that.
  return Math.max(shadowMs, notedMs, killedMs, lostMs + quietMs) + quietMs
}

/**
 * Reads what is known of batches of a partner that were relayed to V2 unrecorded, in times of the database: `notedMs` is the last one that an
 * instance has noted. Until `killedMs` one that was killed may have relayed some, and noted none; after `lostMs` one that does not renew its
 * lease may relay some, as long as it does without the journal.
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
  // An instance that registers from here on reads what this transaction has written.
  if (database.dialect === 'postgres') {
    // `back` waits for this transaction: it gives up rather than to wait for a process that stands still while it renews its lease.
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
