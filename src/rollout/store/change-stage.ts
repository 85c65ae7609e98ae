import { sql } from 'kysely'

import {
  dismissLost,
  dropGone,
  type JournalDatabase,
  ownIdentity,
  readLiveInstances,
  readLostInstances,
} from '../../journal/index.ts'
import { judgeStep } from '../steps.ts'
import type { StageSetting } from '../stage.ts'
import { aboutTrail, type ChangeTransaction, inChangeTransaction } from './change-transaction.ts'
import { dropChange } from './expire-changes.ts'
import { quietUntil } from './quiet-until.ts'
import { readUnrecorded } from './unrecorded.ts'
import type {
  ApplyResult,
  ApproveResult,
  Change,
  CommitResult,
  DismissResult,
  HeldByLost,
  ProposedChange,
  ProposeResult,
  RolloutStore,
  Undrained,
} from './rollout-store.ts'
import { type KeptChange, type KeptStage, toPending, toSetting } from './stage-row.ts'

/** The part of the store that changes stages. */
export type StageChanges = Pick<
  RolloutStore,
  'apply' | 'propose' | 'approve' | 'commit' | 'withdraw' | 'dismiss' | 'note'
>

const stale = { kind: 'stale' } as const
const gone = { kind: 'gone' } as const

/** Creates the part of the store that changes stages. */
export function createStageChanges(database: JournalDatabase): StageChanges {
  return {
    apply: (change, action) =>
      inChangeTransaction(database, { repairs: true }, async (transaction): Promise<ApplyResult> => {
        const kept = await readExpected(transaction, change)
        if (kept === 'stale') return stale
        if (isForward(change, kept)) return { kind: 'forward' }
        const { partner, to, by, reason } = change
        // Higher than any that an instance knows, whatever the damaged row and the trail have lost.
        const before = change.expectedRevision === 'damaged' ? Math.floor(transaction.nowMs / 1_000) : 0
        const revision = Math.max(before, kept?.lastRevision ?? 0) + 1
        const from = toSetting(kept === undefined || kept.state.revision === 0 ? change.from : kept.state)
        if (kept?.pending !== undefined) await dropChange(transaction, partner, kept.pending, by)
        const entry = await transaction.add({
          by,
          partner,
          action,
          from,
          to: toSetting(to),
          revision,
          reason,
        })
        const sinceMs = sinceOf(kept, from, to, transaction.nowMs)
        const state = { partner, revision, ...toSetting(to), sinceMs, by, reason }
        await transaction.writeStage({ state, lastRevision: revision, pending: undefined, entry })
        return { kind: 'applied', revision }
      }),
    propose: (change) =>
      inChangeTransaction(database, { repairs: false }, async (transaction): Promise<ProposeResult> => {
        const kept = await readExpected(transaction, change)
        if (kept === 'stale' || change.expectedRevision === 'damaged') return stale
        const { nowMs } = transaction
        if (kept?.pending !== undefined && kept.pending.expiresMs > nowMs) {
          return { kind: 'pending', pending: toPending(kept.pending) }
        }
        const held = await findLost(database, transaction, change)
        if (held !== undefined) return held
        const early = await findEarly(database, transaction, kept, change)
        if (early !== undefined) return early
        if (kept?.pending !== undefined)
          await dropChange(transaction, change.partner, kept.pending, kept.pending.by)
        return { kind: 'proposed', revision: await keepProposal(transaction, change, kept) }
      }),
    approve: (partner, revision, { by, reason, forMs }) =>
      inChangeTransaction(database, { repairs: false }, async (transaction): Promise<ApproveResult> => {
        const found = await readPending(transaction, partner, revision)
        if (found?.pending.needsApproval !== true) return gone
        if (found.pending.by === by) return { kind: 'own' }
        const { kept } = found
        const pending = { ...found.pending, needsApproval: false, expiresMs: transaction.nowMs + forMs }
        await endPending(transaction, found, { action: 'approve', by, reason }, { ...kept, pending })
        return { kind: 'approved' }
      }),
    commit: (partner, revision) =>
      inChangeTransaction(database, { repairs: false }, async (transaction): Promise<CommitResult> => {
        const found = await readPending(transaction, partner, revision)
        if (found === undefined || found.pending.needsApproval) return gone
        const { kept, pending } = found
        const instances = await findUndrained(database, transaction, partner, revision)
        if (instances.length > 0) return { kind: 'undrained', instances }
        // Later: one whose lease has ended since must not be missed.
        const held = await findLost(database, transaction, pending)
        if (held !== undefined) return held
        const early = await findEarly(database, transaction, kept, { partner, quietMs: pending.quietMs })
        if (early !== undefined) return early
        const { by, reason } = pending
        const sinceMs = sinceOf(kept, pending.from, pending, transaction.nowMs)
        const state = { partner, revision, ...toSetting(pending), sinceMs, by, reason }
        await endPending(
          transaction,
          found,
          { action: 'commit', by, reason },
          { ...kept, state, pending: undefined },
        )
        return { kind: 'committed' }
      }),
    withdraw: (partner, revision, by, reason) =>
      inChangeTransaction(database, { repairs: false }, async (transaction) => {
        const found = await readPending(transaction, partner, revision)
        if (found === undefined) return
        await endPending(
          transaction,
          found,
          { action: 'withdraw', by, reason },
          { ...found.kept, pending: undefined },
        )
      }),
    dismiss: (instance, by, reason) =>
      inChangeTransaction(database, { repairs: false }, async ({ db, add }): Promise<DismissResult> => {
        const lost = await dismissLost(db, database, instance)
        if (lost === undefined) {
          const live = await readLiveInstances(db, database)
          return { kind: live.some((one) => one.instance === instance) ? 'live' : 'unknown' }
        }
        const { host, pid } = lost
        await add({
          ...aboutTrail('dismiss', `instance ${instance} (${host}, process ${pid}) is off: ${reason}`),
          by,
        })
        return { kind: 'dismissed', ...lost }
      }),
    note: (partner, action, by, reason) =>
      inChangeTransaction(database, { repairs: false }, async ({ add, readStage }) => {
        const kept = await readStage(partner)
        const revision = kept === undefined || kept === 'damaged' ? 0 : kept.state.revision
        await add({ by, partner, action, from: undefined, to: undefined, revision, reason })
      }),
  }
}

/** Units that move forward would move while instances still serve by the old stage. */
function isForward({ from, to, expectedRevision }: Change, kept: KeptStage | undefined): boolean {
  // What a damaged row said is not known: V2 serves every unit then.
  if (expectedRevision === 'damaged') return to.stage !== 'legacy' && to.stage !== 'shadow'
  const now = kept === undefined || kept.state.revision === 0 ? from : kept.state
  return judgeStep(now, to, { journalIsDurable: true }).direction === 'forward'
}

/** The row that a change was decided by; `stale`: it is another one by now. Undefined: none, or one that is damaged. */
async function readExpected(
  { readStage, wasSound }: ChangeTransaction,
  { partner, expectedRevision }: Change,
): Promise<KeptStage | 'stale' | undefined> {
  const kept = await readStage(partner)
  // Its rows may be gone with the end of the trail.
  if (kept === 'damaged' || (kept === undefined && !wasSound && expectedRevision === 'damaged'))
    return expectedRevision === 'damaged' ? undefined : 'stale'
  return (kept?.state.revision ?? 0) === expectedRevision ? kept : 'stale'
}

interface FoundPending {
  readonly kept: KeptStage
  readonly pending: KeptChange
}

async function readPending(
  { readStage, nowMs }: ChangeTransaction,
  partner: string,
  revision: number,
): Promise<FoundPending | undefined> {
  const kept = await readStage(partner)
  if (kept === 'damaged' || kept?.pending === undefined) return undefined
  const { pending } = kept
  return pending.revision === revision && pending.expiresMs > nowMs ? { kept, pending } : undefined
}

/** Writes what becomes of a pending change, and the row of the trail. */
async function endPending(
  { add, writeStage }: ChangeTransaction,
  { pending }: FoundPending,
  {
    action,
    by,
    reason,
  }: { readonly action: 'approve' | 'commit' | 'withdraw'; readonly by: string; readonly reason: string },
  next: KeptStage,
): Promise<void> {
  const { partner } = next.state
  const { from, revision } = pending
  const entry = await add({ by, partner, action, from, to: toSetting(pending), revision, reason })
  await writeStage({ ...next, entry })
}

async function keepProposal(
  { add, writeStage, nowMs }: ChangeTransaction,
  change: ProposedChange,
  kept: KeptStage | undefined,
): Promise<number> {
  const { partner, by, reason, forMs, needsApproval, quietMs } = change
  const revision = (kept?.lastRevision ?? 0) + 1
  const isKnown = kept !== undefined && kept.state.revision > 0
  const from = toSetting(isKnown ? kept.state : change.from)
  const to = toSetting(change.to)
  const pending = { ...to, from, revision, by, reason, expiresMs: nowMs + forMs, needsApproval, quietMs }
  const entry = await add({ by, partner, action: 'propose', from, to, revision, reason })
  const state = isKnown ? kept.state : { partner, revision: 0, ...from, sinceMs: 0, by: '', reason: '' }
  await writeStage({ state, lastRevision: revision, pending, entry })
  return revision
}

/** Since when the partner is at the stage that it goes to. */
const sinceOf = (kept: KeptStage | undefined, from: StageSetting, to: StageSetting, nowMs: number): number =>
  kept !== undefined && kept.state.revision > 0 && from.stage === to.stage ? kept.state.sinceMs : nowMs

/** Instances that may send V2 what goes to V3 now; `dropGone` notes until when those may have done so of which the process is gone. */
async function findLost(
  database: JournalDatabase,
  { db }: ChangeTransaction,
  { quietMs }: Pick<ProposedChange, 'quietMs'>,
): Promise<HeldByLost | undefined> {
  if (quietMs === 0) return undefined
  const own = ownIdentity()
  await dropGone(db, database, own)
  const instances = await readLostInstances(db, database, own)
  return instances.length === 0 ? undefined : { kind: 'lost', instances }
}

async function findEarly(
  database: JournalDatabase,
  { db, nowMs }: ChangeTransaction,
  kept: KeptStage | undefined,
  { partner, quietMs }: Pick<ProposedChange, 'partner' | 'quietMs'>,
): Promise<{ readonly kind: 'early'; readonly untilMs: number; readonly nowMs: number } | undefined> {
  if (quietMs === 0) return undefined
  const untilMs = quietUntil(kept?.state, await readUnrecorded(database, db, partner), quietMs)
  return untilMs > nowMs ? { kind: 'early', untilMs, nowMs } : undefined
}

/** Longest wait of a commit for instances that register or renew their lease. */
const LOCK_TIMEOUT_MS = 500

async function findUndrained(
  database: JournalDatabase,
  { db }: ChangeTransaction,
  partner: string,
  revision: number,
): Promise<readonly Undrained[]> {
  // An instance that registers from here on reads what this transaction has written.
  if (database.dialect === 'postgres') {
    // `back` waits for this transaction: it gives up rather than to wait for a process that stands still.
    await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT_MS)}`.execute(db)
    await sql`lock table journal_instances in share mode`.execute(db)
  }
  const live = await readLiveInstances(db, database)
  const rows = await db
    .selectFrom('rollout_acks')
    .selectAll()
    .where('partner', '=', partner)
    .where('pending_revision', '=', revision)
    .execute()
  return live.flatMap(({ instance, host, pid }) => {
    const row = rows.find((one) => one.instance === instance)
    const writes = row === undefined ? undefined : row.writes_v2 + row.writes_v3
    return writes === 0 ? [] : [{ instance, host, pid, writes }]
  })
}
