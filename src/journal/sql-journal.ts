import { createHmac } from 'node:crypto'

import { backgroundClock, type WallClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { Duty } from '../heartbeat.ts'
import { ageingStepMs, openAgeing } from './retention.ts'
import { createAvailability } from './availability.ts'
import { type CommitGate, type Committed, createGroupCommit, type Operation } from './group-commit.ts'
import { createKeyHash } from './seal.ts'
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

/** Events of a journal while it runs; texts hold no value of a record. */
interface JournalEvents {
  /** It cannot be reached or written. Called once until `recovered`. */
  failed(reason: string): void
  recovered(): void
  /** The lease expired: other instances may have finished the batches of this one. */
  leaseLost(): void
}

export interface JournalOptions {
  /** `sqlite:./data/journal.db`, or `postgres://user:password@host/database`. */
  readonly url: string
  /** The first encrypts, each decrypts. None: nothing is encrypted, and no credentials are kept. */
  readonly keys?: readonly JournalKey[]
  /** Retention period of requests and answers; as long, a repeated batch is answered from the journal. Default 24 hours. */
  readonly replayForMs?: number
  /** Retention period of the states of records. Default 90 days. */
  readonly keepRecordsMs?: number
  /** Length of a lease: an instance that does not renew it counts as dead. Default 10 s. */
  readonly leaseMs?: number
  /** Timeout of `begin` and `reopen` while the journal cannot be written. Default 5 s. */
  readonly timeoutMs?: number
  /** Where a PostgreSQL journal keeps its mark. */
  readonly markFile?: string | undefined
  /** With keys: whether rows that are not encrypted are read. Default `refuse`; `accept` until rows from before the keys are deleted. */
  readonly plaintext?: 'accept' | 'refuse'
  /** Timeout of `settle`. Default 60 s. */
  readonly settleTimeoutMs?: number
  /** Default `keptLimits`. */
  readonly kept?: KeptLimits
  readonly clock?: WallClock
  /** Default: those of the operating system. */
  readonly processes?: Processes
  readonly events?: JournalEvents
  /** Waits for a commit of this kind of operation, within a span of a trace. */
  readonly trace?: (<Result>(operation: string, commit: () => Promise<Result>) => Promise<Result>) | undefined
}

/** A journal with a store, which also holds the rate limit that its instances share, and their stages. */
export interface DurableJournal extends Journal {
  readonly rateLimit: SharedRateLimit
  /** For what else is kept in its database. */
  readonly database: JournalDatabase
  /** Deletes what is past its time, and notes how old the journal is. */
  readonly duties: readonly Duty[]
}

/** Other settles go between those of a large batch: what it has settled so far stays so, whatever becomes of the rest. */
const SETTLED_AT_ONCE = 2_000

const HOUR_MS = 3_600_000
const REPLAY_MS = 24 * HOUR_MS
const TIMEOUT_MS = 5_000
/** The usual length of a lease. */
export const LEASE_MS = 10_000
/** How long the end of the journal waits for what it does from time to time. */

/** The prefix of the adapter's notes in `journal_meta`, apart from what the journal itself keeps there. */
const NOTE = 'note: '

/** How long notes of answered batches wait for a `begin` whose transaction they can share. */
const NOTE_ANSWERED_MS = 25

/**
 * Opens a journal, creating its tables where there are none, and takes a lease in it. Errors: `ADP_CONFIGURATION` where the
 * address, the keys or the version do not fit; `ADP_JOURNAL_UNAVAILABLE` where it cannot be reached or written.
 */
export async function openJournal(options: JournalOptions): Promise<DurableJournal> {
  const { url, timeoutMs = TIMEOUT_MS, clock = backgroundClock, markFile } = options
  const open = (): Promise<DurableJournal> =>
    openJournalOn(openStore(url, { timeoutMs, wallMs: () => clock.wallMs(), markFile }), options)
  return open().catch((cause: unknown) => {
    // As a write has two tries in `timeoutMs`: a database that starts at the same time may not answer the first one.
    if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_UNAVAILABLE') return open()
    throw cause
  })
}

/** `openJournal` on a store that was created already; it is closed with the journal, and where this fails. */
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
  const { salt, mark, macKey, readBackUntilMs, readBackFromAgeMs } = opened
  await store.prepare({ salt, mark, key: keys[0], replayForMs, process: processOf(processes.own) })
  const hashKeys = createKeyHash(salt)
  const linkSecret = createHmac('sha256', salt).update('markbridge next links').digest()
  const ageing = await openAgeing({ store, clock, replayForMs })
  /** A wall clock that is set forward does not end the time in which new records are read back. */
  const readBackUntilAgeMs = readBackFromAgeMs === undefined ? 0 : readBackFromAgeMs + replayForMs
  const availability = createAvailability(store, clock, (failure) => {
    if (failure === undefined) events?.recovered()
    else events?.failed(failure)
  })
  const { ask } = availability
  /** Commits an empty group; `availability` gets the result. */
  let probe = (): void => undefined
  const lease = await takeLease({
    ...{ store, clock, leaseMs, identity: processes.own },
    onRenewal: (error) => {
      if (error === undefined) availability.reached('query')
      else availability.failed(store.toStoreError(error), 'query')
      // Without it nothing would be written while clients are kept away, and the end of the failure would not be seen.
      if (error === undefined && availability.needsCommit()) probe()
    },
    onLost: () => {
      events?.leaseLost()
      // The database may be an old copy that does not know this instance.
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
    // Others took this instance for dead: batches that begin from now on belong to a new number.
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
  const note = (batches: readonly number[]): void => {
    // Not noted, a batch is found again: its client gets the stored answer.
    group.submit({ kind: 'answered', batches }, timeoutMs).catch(() => undefined)
  }
  probe = () => note([])
  // A wall clock that jumps ahead while the process runs must not delete anything.
  const openedMs = clock.wallMs() - clock.nowMs()
  const retentionMs = (): number => Math.min(clock.wallMs(), openedMs + clock.nowMs())
  const purgeOld = async (): Promise<void> => {
    const periods = { replayForMs, keepRecordsMs }
    await ask(() => purge(store, periods, retentionMs(), ageing.forgottenAgeMs()))
    await ask(() => kept.refresh())
  }
  // What is not noted makes the journal younger, and batches are recognised for longer.
  const noteAge = (): Promise<void> => ask(() => ageing.note())
  /** Batches whose replies were written out since the last note. */
  let answered: number[] = []
  let cancelNote: (() => void) | undefined
  const noteAnswered = (): void => {
    cancelNote?.()
    cancelNote = undefined
    if (answered.length === 0) return
    const batches = answered
    answered = []
    note(batches)
  }
  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    noteAnswered()
    await group.idle()
    await noteAge().catch(() => undefined)
    await lease.end().catch((error: unknown) => availability.failed(store.toStoreError(error), 'query'))
    await store.close()
  }
  return {
    durable: true,
    linkSecret,
    duties: [
      { name: 'journal purge', everyMs: HOUR_MS, act: purgeOld },
      { name: 'journal age', everyMs: ageingStepMs(replayForMs), act: noteAge },
    ],
    get readBackUntilMs() {
      return ageing.ageMs() >= readBackUntilAgeMs ? readBackUntilMs : Infinity
    },
    rateLimit: createSharedRateLimit(store, (name) => hashKeys([name])[0] ?? '', ask),
    database: {
      db,
      dialect: store.dialect,
      macKey,
      nowMs: () => store.nowMs(),
      ask,
    },
    answered: (batch) => {
      answered.push(batch)
      cancelNote ??= clock.after(NOTE_ANSWERED_MS, noteAnswered)
    },
    begin: async (batch) => {
      // First, in the same group: what is answered before this batch came may be retired by it.
      noteAnswered()
      // A batch that was made durable although its caller got `ADP_OUTCOME_UNKNOWN` is found as abandoned: it keeps its place before newer ones.
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
      // Records that are opened after this has failed are found as abandoned.
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
        // That renewal may have been sent before this process was stopped.
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
    'Another instance has taken this batch over and finishes it. Its records may have been applied: send the same batch again for the answer.',
  )
