import { backgroundClock, type WallClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { Duty } from '../heartbeat.ts'
import { ageingStepMs, openAgeing } from './retention.ts'
import { createAvailability } from './availability.ts'
import { type CommitGate, type Committed, createGroupCommit, type Operation } from './group-commit.ts'
import { createKeyHash, linkSecretOf } from './seal.ts'
import { ownProcesses, type Processes, processOf } from './process-identity.ts'
import type { Journal } from './journal.ts'
import type { JournalDatabase } from './open-store.ts'
import { createKeptBytes, type KeptLimits, keptLimits, tooMuchKept } from './kept-bytes.ts'
import { createKnownMarks } from './known-marks.ts'
import { takeLease } from './lease.ts'
import { readMeta, writeMeta } from './schema.ts'
import { openStore, openTables, toOpeningError } from './open-store.ts'
import { createSharedRateLimit, type SharedRateLimit } from './rate-slots.ts'
import { readBatch } from './read-batch.ts'
import {
  readBalances,
  readBlocking,
  readDue,
  readOlderOpen,
  readOlderUnsettled,
  readStillOpen,
  readDeadLetters,
  readUnsettled,
} from './read-records.ts'
import { purge } from './retention.ts'
import type { JournalKey } from './seal.ts'
import type { Store } from './store.ts'
import { askForBatch, createFindAbandoned, createTakeOver, handOverBatches } from './take-over.ts'

/** Events of a running journal. No event text contains a value of a record. */
interface JournalEvents {
  /** Called when the journal cannot be reached or written. Called again before `recovered` only if damage is found meanwhile. */
  failed(reason: string): void
  recovered(): void
  /** Called when the lease has expired. Other instances may have finished the batches of this instance. */
  leaseLost(): void
}

export interface JournalOptions {
  /** The address of the database: `sqlite:./data/journal.db`, or `postgres://user:password@host/database`. */
  readonly url: string
  /** The first key encrypts; every key decrypts. Default: no key, so the journal encrypts nothing and stores no credentials. */
  readonly keys?: readonly JournalKey[]
  /** Retention period of requests and replies. Within this period the journal answers a resent batch. Default 24 hours. */
  readonly replayForMs?: number
  /** Retention period of the states of records. Default 90 days. */
  readonly keepRecordsMs?: number
  /** Length of a lease. An instance that does not renew its lease in time counts as dead. Default 10 s. */
  readonly leaseMs?: number
  /** Timeout of `begin`, `reopen` and the take-over of orphans. A statement has half of this time. Default 5 s. */
  readonly timeoutMs?: number
  readonly highWaterFile?: string | undefined
  /** Whether a journal with keys reads unencrypted rows. `accept` is for rows that were written before the journal had keys. Default `refuse`. */
  readonly plaintext?: 'accept' | 'refuse'
  /** Timeout of `settle`. Default 60 s. */
  readonly settleTimeoutMs?: number
  /** Maximum bytes of stored requests, for each owner, and for all newcomers together. Default: `keptLimits`. */
  readonly kept?: KeptLimits
  readonly clock?: WallClock
  readonly processes?: Processes
  readonly events?: JournalEvents
  /** Runs the commit of one operation within a span of a trace. */
  readonly trace?: (<Result>(operation: string, commit: () => Promise<Result>) => Promise<Result>) | undefined
}

/** A journal with a database. Also provides the rate limit that its instances share, and the database for their stages. */
export interface DurableJournal extends Journal {
  readonly rateLimit: SharedRateLimit
  readonly database: JournalDatabase
  /** The periodic tasks that delete data past its retention period and store the age of the journal. */
  readonly duties: readonly Duty[]
}

/** Maximum number of outcomes in one commit, so that the settles of other batches run between the commits of a large batch. */
const SETTLED_AT_ONCE = 2_000

const HOUR_MS = 3_600_000
const REPLAY_MS = 24 * HOUR_MS
const TIMEOUT_MS = 5_000
export const LEASE_MS = 10_000

/** The prefix of notes in `journal_meta`, which separates the notes from the journal's own entries. */
const NOTE = 'note: '

/** How long answered batches wait for a `begin` whose transaction can record the answers, in milliseconds. */
const FLUSH_ANSWERED_MS = 25

/**
 * Opens a journal, creates missing tables, and takes a lease. Throws `ADP_CONFIGURATION` if the URL, the keys or the version do not match,
 * `ADP_JOURNAL_DAMAGED` if the journal is damaged, and `ADP_JOURNAL_UNAVAILABLE` if the journal cannot be reached or written.
 */
export async function openJournal(options: JournalOptions): Promise<DurableJournal> {
  const { url, timeoutMs = TIMEOUT_MS, clock = backgroundClock, highWaterFile } = options
  const open = (): Promise<DurableJournal> =>
    openJournalOn(openStore(url, { timeoutMs, wallMs: () => clock.wallMs(), highWaterFile }), options)
  return open().catch((cause: unknown) => {
    // Retries once within `timeoutMs`. A database that starts at the same time may not respond to the first attempt.
    if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_UNAVAILABLE') return open()
    throw cause
  })
}

/** Opens a journal on a store. The journal closes the store when the journal closes or cannot be opened. */
export async function openJournalOn(
  store: Store,
  options: Omit<JournalOptions, 'url'>,
): Promise<DurableJournal> {
  try {
    return await createJournal(store, options)
  } catch (error) {
    await store.close()
    throw toOpeningError(store, error)
  }
}

async function createJournal(store: Store, options: Omit<JournalOptions, 'url'>): Promise<DurableJournal> {
  const { keys = [], replayForMs = REPLAY_MS, clock = backgroundClock, events } = options
  const { processes = ownProcesses() } = options
  const { timeoutMs = TIMEOUT_MS, settleTimeoutMs = 60_000, leaseMs = LEASE_MS } = options
  const keepRecordsMs = Math.max(replayForMs, options.keepRecordsMs ?? 90 * 24 * HOUR_MS)
  const unsealing = { keys, plaintextAccepted: options.plaintext === 'accept' }
  const { db } = store
  const opened = await openTables(store, unsealing)
  const { salt, mark, secret, readBackUntilMs, readBackFromAgeMs } = opened
  await store.prepare({ salt, mark, key: keys[0], replayForMs, process: processOf(processes.own) })
  const hashKeys = createKeyHash(salt)
  const linkSecret = linkSecretOf(salt)
  const ageing = await openAgeing({ store, clock, replayForMs })
  /** The age of the journal, in milliseconds, at which the read-back period ends. A wall clock that is set forward does not change the age. */
  const readBackUntilAgeMs = readBackFromAgeMs === undefined ? 0 : readBackFromAgeMs + replayForMs
  const availability = createAvailability(store, clock, (failure) => {
    if (failure === undefined) events?.recovered()
    else events?.failed(failure)
  })
  const { ask } = availability
  /** Tests the store with a commit that changes no batch. The result of the commit updates `availability`. */
  let probe = (): void => undefined
  const lease = await takeLease({
    ...{ store, clock, leaseMs, identity: processes.own },
    onRenewal: (error) => {
      if (error === undefined) availability.reached('query')
      else availability.failed(store.toStoreError(error), 'query')
      // Makes a test commit. After a failed commit the adapter rejects requests, so no other commit would show that the store works again.
      if (error === undefined && availability.needsCommit()) probe()
    },
    onLost: () => {
      events?.leaseLost()
      // Makes a test commit, because the check within a commit detects a database that is an old copy and does not know this instance.
      probe()
    },
  })
  const commitUnderLease = (operations: readonly Operation[], gate: CommitGate): Promise<Committed> =>
    store.commit({
      instance: lease.instance(),
      nowMs: Math.round(clock.wallMs()),
      ageMs: ageing.ageMs(),
      forgottenAgeMs: ageing.forgottenAgeMs(),
      operations,
      gate,
    })
  const commit = async (operations: readonly Operation[], gate: CommitGate): Promise<Committed> => {
    const committed = await commitUnderLease(operations, gate)
    if (committed.ok || committed.error.kind !== 'expired') return committed
    // Other instances declared this instance dead. Renews the lease, and commits the group under the new lease.
    try {
      await lease.renew()
    } catch (error) {
      const storeError = store.toStoreError(error)
      return { ok: false, error: storeError.kind === 'damaged' ? storeError : { ...storeError, kind: 'transient' } } // prettier-ignore
    }
    return commitUnderLease(operations, gate)
  }
  const group = createGroupCommit({
    clock,
    commit: async (operations, gate) => {
      const committed = await commit(operations, gate)
      if (committed.ok) availability.reached('commit')
      else availability.failed(committed.error, 'commit')
      return committed
    },
  })
  const { trace } = options
  const submit: typeof group.submit = (operation, waitMs) =>
    trace === undefined
      ? group.submit(operation, waitMs)
      : trace(operation.kind, () => group.submit(operation, waitMs))
  const findAbandoned = createFindAbandoned(store, group)
  const knownMarks = createKnownMarks(db, hashKeys)
  const kept = createKeptBytes(db, options.kept ?? keptLimits)
  await kept.refresh()
  const takeOver = createTakeOver({
    ...{ store, clock, processes },
    take: () => group.submit({ kind: 'takeOver' }, timeoutMs),
  })
  const recordAnswered = (batches: readonly number[]): void => {
    // Ignores a failure: the journal then still recognises a resend of the batch, and the client gets the stored reply.
    group.submit({ kind: 'answered', batches }, timeoutMs).catch(() => undefined)
  }
  probe = () => recordAnswered([])
  // Uses the earlier of two clocks, so that a wall clock that jumps ahead while the process runs deletes nothing.
  const openedMs = clock.wallMs() - clock.nowMs()
  const retentionMs = (): number => Math.min(clock.wallMs(), openedMs + clock.nowMs())
  const purgeOld = async (): Promise<void> => {
    const periods = { replayForMs, keepRecordsMs }
    await ask(() => purge(store, periods, retentionMs(), ageing.forgottenAgeMs()))
    await ask(() => kept.refresh())
  }
  // A failure of this write does no harm: the journal appears younger than it is, and recognises batches for longer.
  const storeAge = (): Promise<void> => ask(() => ageing.save())
  let answered: number[] = []
  let cancelFlush: (() => void) | undefined
  const flushAnswered = (): void => {
    cancelFlush?.()
    cancelFlush = undefined
    if (answered.length === 0) return
    const batches = answered
    answered = []
    recordAnswered(batches)
  }
  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    flushAnswered()
    await group.idle()
    await storeAge().catch(() => undefined)
    await lease.end().catch((error: unknown) => availability.failed(store.toStoreError(error), 'query'))
    await store.close()
  }
  return {
    durable: true,
    linkSecret,
    duties: [
      { name: 'journal purge', everyMs: HOUR_MS, act: purgeOld },
      { name: 'journal age', everyMs: ageingStepMs(replayForMs), act: storeAge },
    ],
    get readBackUntilMs() {
      return ageing.ageMs() >= readBackUntilAgeMs ? readBackUntilMs : Infinity
    },
    rateLimit: createSharedRateLimit({
      ...{ store, ask },
      hashName: (name) => hashKeys([name])[0] ?? '',
      aloneSinceMs: () => lease.aloneSinceMs(),
    }),
    database: {
      db,
      dialect: store.dialect,
      secret,
      nowMs: () => store.nowMs(),
      ask,
    },
    answered: (batch) => {
      answered.push(batch)
      cancelFlush ??= clock.after(FLUSH_ANSWERED_MS, flushAnswered)
    },
    begin: async (batch) => {
      // Records the answers earlier in the same group, because this batch may retire batches that were answered before it arrived.
      flushAnswered()
      // If the caller gets `ADP_OUTCOME_UNKNOWN` although the batch is durable, `findAbandoned` finds the batch, and newer records of its
      // keys wait for it.
      const result = await submit({ kind: 'begin', batch, hasRoom: kept.hasRoom(batch) }, timeoutMs)
      if (result === 'full') throw tooMuchKept()
      if (result.kind === 'new') kept.begun(result.batch, batch)
      return result
    },
    settle: async (batch, outcomes, under) => {
      let from = 0
      do {
        const part = outcomes.slice(from, (from += SETTLED_AT_ONCE))
        const operation = { kind: 'settle', batch, lease: under, outcomes: part } as const
        if ((await submit(operation, settleTimeoutMs)) === 'lost') throw lost()
      } while (from < outcomes.length)
      if (outcomes.some(({ state }) => state === 'confirmed')) kept.accepted(batch)
    },
    forget: async (batch, open, under) => {
      const operation = { kind: 'forget', batch, open, lease: under } as const
      if ((await submit(operation, settleTimeoutMs)) === 'lost') throw lost()
      kept.forgotten(batch)
    },
    reopen: async (batch, positions, credentials, how) => {
      const operation = {
        kind: 'reopen',
        batch,
        positions,
        credentials,
        beforeRelay: how === 'beforeRelay',
      } as const
      // Needs no handling of a call that fails although its commit succeeds, because `findAbandoned` finds the reopened records.
      return submit(operation, timeoutMs)
    },
    load: (batch) => ask(() => readBatch(db, batch, unsealing)),
    blocking: (batches) => ask(() => readBlocking(db, batches)),
    knownMarks: (record, sinceMs) => ask(() => knownMarks(record, sinceMs)),
    olderOpen: (records) => ask(() => readOlderOpen(db, records)),
    olderUnsettled: (records) => ask(() => readOlderUnsettled(db, records)),
    stillOpen: (records) => ask(() => readStillOpen(db, records)),
    takeOver: () => ask(() => takeOver(lease.instance())),
    findAbandoned: (isAttended) => ask(() => findAbandoned(lease.instance(), isAttended)),
    askFor: (batch) => ask(() => askForBatch(db, batch, lease.instance())),
    handOver: (batches) => ask(() => handOverBatches(store, batches, lease.instance())),
    due: (nowMs, limit) => ask(() => readDue(db, nowMs, limit)),
    readNote: (name) => ask(() => readMeta(db, NOTE + name)),
    writeNote: (name, text) => ask(() => writeMeta(db, NOTE + name, text)),
    balances: () => ask(() => readBalances(db)),
    unsettled: () => ask(() => readUnsettled(db)),
    deadLetters: () => ask(() => readDeadLetters(db)),
    lease: () => (lease.holds() ? lease.instance() : undefined),
    renewLease: async () => {
      try {
        await lease.renew()
        // Renews again if the lease has already ended, because this process may have been suspended after it sent the first renewal.
        if (!lease.holds()) await lease.renew()
      } catch (error) {
        availability.failed(store.toStoreError(error), 'query')
      }
      return lease.holds() ? lease.instance() : undefined
    },
    isAvailable: () => availability.isAvailable(),
    isDamaged: () => availability.isDamaged(),
    close: () => (closed ??= close()),
  }
}

const lost = (): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_LOST',
    'Another instance has taken over this batch and finishes it. Its records may have been applied. Send the same batch again for the result.',
  )
