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

export interface Change {
  readonly partner: string
  /** 0 if the store did not know the partner when the caller decided, `damaged` if its row was damaged. */
  readonly expectedRevision: number | 'damaged'
  /** The setting of the configuration file if the store has none. */
  readonly from: StageSetting
  readonly to: StageSetting
  readonly by: string
  readonly reason: string
}

/** A change that waits for its instances, or for an operator's approval. */
export interface ProposedChange extends Change {
  /** How long the change may wait. A later commit is refused. */
  readonly forMs: number
  readonly needsApproval: boolean
  /** The commit needs this time without a possibly unrecorded batch, and no lost instance. 0 if no unit moves to V3. */
  readonly quietMs: number
}

/** A live instance that a change waits for. */
export interface Undrained {
  readonly instance: number
  readonly host: string
  readonly pid: number
  /** The number of writes on the side that their unit leaves, or `undefined` if the instance has not acknowledged the change. */
  readonly writes: number | undefined
}

/** `lost`: lost instances may still send V2 writes of units that would move. `early`: the journal may lack the latest batches. */
type Obstacle =
  | { readonly kind: 'lost'; readonly instances: readonly LostInstance[] }
  | { readonly kind: 'early'; readonly untilMs: number; readonly nowMs: number }

/** Other transactions that change stages wait until this one ends. */
interface ChangeTransaction {
  readonly db: Transaction<JournalTables>
  /** The time by the clock of the database. */
  readonly nowMs: number
  /** False if this change repaired the end of the trail. */
  readonly wasSound: boolean
  /** Returns the number of the new row of the audit trail. */
  readonly add: (entry: Omit<AuditEntry, 'entry' | 'atMs'>) => Promise<number>
  /** `damaged` if the row was altered or lost, `undefined` if there never was one. */
  readonly read: (partner: string) => Promise<KeptStage | 'damaged' | undefined>
  readonly write: (kept: KeptStage) => Promise<void>
}

/**
 * Runs a change alone, with the rows that it adds to the audit trail. With `repairs`, a damaged end of the trail is replaced by the end of
 * the existing rows, and the trail says so. Otherwise it throws `ADP_JOURNAL_DAMAGED`.
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
      if (!isSound) await add(aboutTrail('repair', 'the end of the audit trail had been altered'))
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

/** Ends the transaction of a stopped process, which would keep the kill switch and the renewal of leases waiting. */
async function endWhenPaused({ dialect }: JournalDatabase, db: Kysely<JournalTables>): Promise<void> {
  if (dialect === 'postgres') await sql`set local idle_in_transaction_session_timeout = 1000`.execute(db)
}

const damagedTrail = (): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    'The end of the audit trail of stages was altered. No stage was changed. Read the trail with markbridge rollout history. ' +
      'markbridge rollout back still works. It repairs the end and records the repair in the trail.',
  )

const stale = { kind: 'stale' } as const
const gone = { kind: 'gone' } as const

/**
 * Creates the part of the store that changes stages. Every change is a compare-and-set on the revision and writes its row of the audit
 * trail in the same transaction. Its functions throw `ADP_JOURNAL_UNAVAILABLE` and `ADP_JOURNAL_DAMAGED`.
 */
export function createStageChanges(database: JournalDatabase) {
  const change = <Result>(
    work: (transaction: ChangeTransaction) => Promise<Result>,
    repairs = false,
  ): Promise<Result> => inChange(database, { repairs }, work)
  return {
    /** Replaces a damaged end of the trail by the end of its rows. Returns false if the end was not damaged. */
    repair: () => change(({ wasSound }) => Promise.resolve(!wasSound), true),
    /** Changes a stage at once and drops a pending change. Returns `forward` for a change that must be proposed instead. */
    apply: (wanted: Change, action: 'set' | 'back' | 'guard') =>
      change(async (transaction) => {
        const kept = await readExpected(transaction, wanted)
        if (kept === 'stale') return stale
        if (isForward(wanted, kept)) return { kind: 'forward' as const }
        const { partner, by, reason } = wanted
        const { nowMs } = transaction
        // The revision must be higher than any that an instance knows, whatever the damaged row and the trail lost.
        const least = wanted.expectedRevision === 'damaged' ? Math.floor(nowMs / 1_000) : 0
        const revision = Math.max(least, kept?.lastRevision ?? 0) + 1
        const [from, to] = [toSetting(committedOf(kept) ?? wanted.from), toSetting(wanted.to)]
        if (kept?.pending !== undefined) await dropPending(transaction, partner, kept.pending, by)
        const entry = await transaction.add({ by, partner, action, from, to, revision, reason })
        const state = { partner, revision, ...to, sinceMs: sinceOf(kept, from, to, nowMs), by, reason }
        await transaction.write({ state, lastRevision: revision, pending: undefined, entry })
        return { kind: 'applied' as const, revision }
      }, true),
    /** Proposes a change that is committed once all live instances acknowledge it. Returns `pending` if another change is waiting. */
    propose: (wanted: ProposedChange) =>
      change(async (transaction) => {
        const found = await findHindrance(database, transaction, wanted)
        if (found.kind !== 'free') return found
        const { kept } = found
        const { pending } = kept ?? {}
        if (pending !== undefined) await dropPending(transaction, wanted.partner, pending, pending.by)
        return { kind: 'proposed' as const, revision: await keepProposal(transaction, wanted, kept) }
      }),
    /** Returns the reason why `propose` would refuse the change, or `undefined` if it would not. Changes no stage. */
    hindrance: (wanted: Omit<ProposedChange, 'forMs' | 'needsApproval'>) =>
      change(async (transaction) => {
        const found = await findHindrance(database, transaction, wanted)
        return found.kind === 'free' ? undefined : found
      }),
    /**
     * Approves the change of another operator, which then may wait for another `forMs`. Returns `own` if the same operator proposed the
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
        await writeEnd(transaction, kept, { action: 'approve', by, reason }, { ...kept, pending })
        return { kind: 'approved' as const }
      }),
    /** Commits a pending change if it has not expired and every live instance acknowledged it without writes under way. */
    commit: (partner: string, revision: number) =>
      change(async (transaction) => {
        const kept = await readPending(transaction, partner, revision)
        if (kept === undefined || kept.pending.needsApproval) return gone
        const { pending } = kept
        const instances = await findUndrained(database, transaction, partner, revision)
        if (instances.length > 0) return { kind: 'undrained' as const, instances }
        // Checked after the live instances, so that an instance whose lease ends in between is not missed.
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
    /** Does nothing if the change is already gone. */
    withdraw: (partner: string, revision: number, by: string, reason: string) =>
      change(async (transaction) => {
        const kept = await readPending(transaction, partner, revision)
        if (kept === undefined) return
        await writeEnd(transaction, kept, { action: 'withdraw', by, reason }, { ...kept, pending: undefined })
      }),
    /**
     * Records that an operator declares a lost instance off, which may have relayed writes unrecorded until now. Returns `live` if the
     * instance holds its lease, or `unknown` if no lost instance has this number.
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
    /** Adds an operator's action that changes no stage to the trail. The row names no partner, because a partner's rows tell its stage. */
    recordAction: (action: NotedAction, by: string, what: string) =>
      change(async ({ add }) => {
        await add({ ...aboutTrail(action, what), by })
      }),
  }
}

/**
 * Ends the expired pending changes of partners, after any commit that began earlier. Throws `ADP_JOURNAL_DAMAGED` if the end of the trail
 * is damaged, which prevents commits as well.
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

/** Records in the trail that a pending change is dropped. Returns the number of the row. */
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

const committedOf = (kept: KeptStage | undefined): StageState | undefined =>
  kept === undefined || kept.state.revision === 0 ? undefined : kept.state

/** Returns true for a step forward. Made at once, it would move units while instances still serve by the old stage. */
function isForward({ from, to, expectedRevision }: Change, kept: KeptStage | undefined): boolean {
  // The stage of a damaged row is unknown. Any stage at which V3 serves a unit counts as forward.
  if (expectedRevision === 'damaged') return !isServedByV2(to.stage)
  return judgeStep(committedOf(kept) ?? from, to).direction === 'forward'
}

/** Returns the row that a change is based on: `stale` if it has changed since, `undefined` if it is missing or damaged. */
async function readExpected(
  { read, wasSound }: ChangeTransaction,
  { partner, expectedRevision }: Change,
): Promise<KeptStage | 'stale' | undefined> {
  const kept = await read(partner)
  // The rows of the partner may have been lost with the end of the trail.
  if (kept === 'damaged' || (kept === undefined && !wasSound && expectedRevision === 'damaged'))
    return expectedRevision === 'damaged' ? undefined : 'stale'
  return (kept?.state.revision ?? 0) === expectedRevision ? kept : 'stale'
}

type KeptPending = KeptStage & { readonly pending: PendingChange }

/** Returns `undefined` if the change can no longer be committed. */
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

/** Returns the time since when the partner is at the stage that the change leads to. */
const sinceOf = (kept: KeptStage | undefined, from: StageSetting, to: StageSetting, nowMs: number): number =>
  (from.stage === to.stage ? committedOf(kept)?.sinceMs : undefined) ?? nowMs

/** Returns `free` if the change can be proposed now. */
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

/** Returns `undefined` if units may go to V3 now. First, `dropGone` records instances whose process has ended. */
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
 * Returns the time, by the clock of the database, until which a client may resend a batch that V2 got without the journal's knowledge. No
 * unit may go to V3 before. `committed` is `undefined` if the stage is that of the file.
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
  // Nothing is recorded before `shadow`.
  const shadowMs = committed?.stage === 'shadow' ? committed.sinceMs : -Infinity
  // An instance that lost its lease may go without the journal for `quietMs`, and a batch of that time may be resent for as long.
  return Math.max(shadowMs, notedMs, killedMs, lostMs + quietMs) + quietMs
}

/**
 * Reads when batches of a partner may have been relayed to V2 unrecorded, by the clock of the database. `notedMs` is the last batch that an
 * instance reported. Until `killedMs` a killed instance may have relayed batches without reporting them. After `lostMs` an instance that
 * does not renew its lease may relay batches for as long as it goes without the journal.
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
  // With this lock, an instance that registers later reads what this transaction writes.
  if (database.dialect === 'postgres') {
    // `back` waits for this transaction, so the transaction gives up rather than wait for a process that stalls while renewing its lease.
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
