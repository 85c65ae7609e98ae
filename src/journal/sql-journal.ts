import { AdapterError } from '../errors.ts'
import { type Ageing, ageingStepMs } from './ageing.ts'
import { readBalances } from './balances.ts'
import { findBatch } from './find-batch.ts'
import { createKnownMarks } from './known-marks.ts'
import { createAbandonedSearch } from './find-abandoned.ts'
import type { Journal } from './journal.ts'
import { askForBatch, handOverBatches } from './lease/hand-over.ts'
import { createKeptBytes, type KeptLimits, tooMuchKept } from './kept-bytes.ts'
import type { Lease, LeaseWatch } from './lease/lease.ts'
import type { ProcessIdentity } from './lease/process-identity.ts'
import { createTakeOver } from './lease/take-over.ts'
import type { SharedRateLimit } from './rate-limit/rate-limit.ts'
import { readNote, writeNote } from './notes.ts'
import { createSharedRateLimit } from './rate-limit/shared-rate-limit.ts'
import { purge, type Retention } from './purge.ts'
import { readOlderOpen } from './older-open.ts'
import { readBatch } from './read-batch.ts'
import { readBlocking, readDue, readOlderUnsettled, readStillOpen } from './read-records.ts'
import { createAvailability } from './store/availability.ts'
import type { WallClock } from '../clock.ts'
import type { JournalDatabase } from './journal-database.ts'
import { createCommitLanes } from './store/commit-lanes.ts'
import type { MacKey } from './store/mac-key.ts'
import {
  type OperationResult,
  toBegin,
  toBeginResult,
  toColumns,
  toReopenResult,
} from './store/operations.ts'
import type { Unsealing } from './store/seal.ts'
import type { Store } from './store/store.ts'
import { readUnsettled } from './unsettled.ts'

/** Events of a journal while it runs; texts hold no value of a record. */
export interface JournalEvents {
  /** It cannot be reached or written. Called once until `recovered`. */
  failed(reason: string): void
  recovered(): void
  /** The lease expired: other instances may have finished the batches of this one. */
  leaseLost(): void
  /** Called at the start with the number of batches that have damaged rows. */
  rowsDamaged(batches: number): void
}

/** Until when new records are read back from V3 before they are posted; the phase ends when all of these are reached. */
export interface ReadBackPhase {
  /** Milliseconds since the epoch; 0: never. */
  readonly untilMs: number
  /** The age of the journal, ms; 0: never. A wall clock that is set forward does not end the phase. */
  readonly untilAgeMs: number
  /** The newest batch that has certainly expired; 0: none. */
  readonly untilForgotten: number
}

export interface SqlJournalOptions {
  readonly store: Store
  readonly unsealing: Unsealing
  /** Derived from the journal's salt. */
  readonly linkSecret: Uint8Array
  readonly macKey: MacKey
  /** Hashes keys, 16 bytes each. */
  readonly hashKeys: (keys: readonly string[]) => Uint8Array
  readonly readBack: ReadBackPhase
  readonly clock: WallClock
  readonly ageing: Ageing
  readonly identity: ProcessIdentity
  readonly leaseMs: number
  readonly takeLease: (watch: LeaseWatch) => Promise<Lease>
  readonly timeoutMs: number
  readonly settleTimeoutMs: number
  readonly retention: Retention
  readonly kept: KeptLimits
  readonly purgeEveryMs: number
  readonly events: JournalEvents | undefined
}

/** A journal with a store, which also holds the rate limit that its instances share, and their stages. */
export interface DurableJournal extends Journal {
  readonly rateLimit: SharedRateLimit
  /** For what else is kept in its database. */
  readonly database: JournalDatabase
}

/** Other settles go between those of a large batch: what it has settled so far stays so, whatever becomes of the rest. */
const SETTLED_AT_ONCE = 2_000

/** How long notes of answered batches wait for a `begin` whose transaction they can share. */
const NOTE_ANSWERED_MS = 25

/** Creates the journal of a store whose tables are up to date, and takes its lease. */
export async function createSqlJournal(options: SqlJournalOptions): Promise<DurableJournal> {
  const { store, unsealing, clock, leaseMs, timeoutMs, settleTimeoutMs, events, ageing, readBack } = options
  const { replayForMs } = options.retention
  const availability = createAvailability(store, clock, (failure) => {
    if (failure === undefined) events?.recovered()
    else events?.failed(failure)
  })
  /** Commits an empty group; `availability` gets the result. */
  let probe = (): void => undefined
  const lease = await options.takeLease({
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
  const lanes = createCommitLanes({ store, clock, lease, availability, ageing })
  const abandoned = createAbandonedSearch(store)
  const knownMarks = createKnownMarks(store.db, options.hashKeys)
  const kept = createKeptBytes(store.db, options.kept)
  await kept.refresh()
  const takeOver = createTakeOver({ store, clock, leaseMs, own: options.identity })
  probe = () => {
    lanes
      .of('probe')
      .submit({ kind: 'probe' }, timeoutMs)
      .catch(() => undefined)
  }
  // A wall clock that jumps ahead while the process runs must not delete anything.
  const openedMs = clock.wallMs() - clock.nowMs()
  const retentionMs = (): number => Math.min(clock.wallMs(), openedMs + clock.nowMs())
  const stopPurging = repeat(clock, options.purgeEveryMs, async () => {
    await availability.ask(() => purge(store, options.retention, retentionMs(), ageing.forgottenBatch()))
    await availability.ask(() => kept.refresh())
  })
  const stopAgeing = repeat(clock, ageingStepMs(replayForMs), () => availability.ask(() => ageing.note()))
  /** Batches whose replies were written out since the last note. */
  let answered: number[] = []
  let cancelNote: (() => void) | undefined
  const noteAnswered = (): void => {
    cancelNote?.()
    cancelNote = undefined
    if (answered.length === 0) return
    const batches = answered
    answered = []
    // Not noted, a batch is found again: its client gets the stored answer.
    lanes
      .of('answered')
      .submit({ kind: 'answered', batches }, timeoutMs)
      .catch(() => undefined)
  }
  const find: Journal['find'] = (batch) =>
    availability.ask(() =>
      findBatch(store.db, batch, { replayForMs, forgottenBatch: ageing.forgottenBatch() }),
    )
  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    stopPurging()
    stopAgeing()
    noteAnswered()
    await lanes.idle()
    // What is not noted makes the journal younger, and batches are recognised for longer.
    await ageing.note().catch((error: unknown) => availability.failed(store.toStoreError(error), 'query'))
    await lease.end().catch((error: unknown) => availability.failed(store.toStoreError(error), 'query'))
    await store.close()
  }
  return {
    durable: true,
    linkSecret: options.linkSecret,
    get readBackUntilMs() {
      const isOver =
        ageing.ageMs() >= readBack.untilAgeMs && ageing.forgottenBatch() >= readBack.untilForgotten
      return isOver ? readBack.untilMs : Infinity
    },
    rateLimit: createSharedRateLimit(
      store,
      (name) => options.hashKeys([name]),
      (question) => availability.ask(question),
    ),
    database: {
      db: store.db,
      dialect: store.dialect,
      macKey: options.macKey,
      nowMs: () => store.nowMs(),
      ask: (question) => availability.ask(question),
    },
    answered: (batch) => {
      answered.push(batch)
      cancelNote ??= clock.after(NOTE_ANSWERED_MS, noteAnswered)
    },
    begin: async (batch) => {
      // First, in the same group: what is answered before this batch came may be retired by it.
      noteAnswered()
      // A batch that came before has its answer, however much is kept.
      if (!kept.hasRoom(batch) && (await find(batch)) === undefined) throw tooMuchKept()
      // A batch that becomes durable after its caller got `ADP_OUTCOME_UNKNOWN` is found as abandoned: it keeps its place before newer ones.
      const result = await lanes.of('begin').submit(toBegin(batch), timeoutMs, abandoned.beginCall())
      if (typeof result === 'string' || !('kind' in result)) throw unexpected(result)
      if (result.kind === 'new') kept.begun(result.batch, batch)
      return toBeginResult(result)
    },
    find,
    settle: async (batch, outcomes, under) => {
      let from = 0
      do {
        const part = outcomes.slice(from, (from += SETTLED_AT_ONCE))
        const operation = { kind: 'settle', batch, lease: under, ...toColumns(part) } as const
        const result = await lanes.of('settle').submit(operation, settleTimeoutMs)
        if (result === 'lost') throw lost()
      } while (from < outcomes.length)
      if (outcomes.some(({ state }) => state === 'confirmed')) kept.accepted(batch)
    },
    forget: async (batch, open, under) => {
      const operation = { kind: 'forget', batch, open, lease: under } as const
      if ((await lanes.of('forget').submit(operation, settleTimeoutMs)) === 'lost') throw lost()
      kept.forgotten(batch)
    },
    reopen: async (batch, positions, credentials, how) => {
      // Oldest first: a record is left out when a newer one of its key is open.
      const inOrder = [...positions].sort((one, other) => one - other)
      const operation = {
        kind: 'reopen',
        batch,
        positions: inOrder,
        credentials,
        evenDamaged: how === 'evenDamaged',
        beforeRelay: how === 'beforeRelay',
      } as const
      // Records that are opened after this has failed are found as abandoned.
      const result = await lanes.of('reopen').submit(operation, timeoutMs, abandoned.beginCall())
      if (typeof result === 'string' || !('opened' in result)) throw unexpected(result)
      return toReopenResult(result)
    },
    load: (batch) => availability.ask(() => readBatch(store.db, batch, unsealing)),
    blocking: (batches) => availability.ask(() => readBlocking(store.db, batches)),
    knownMarks: (record, sinceMs) => availability.ask(() => knownMarks(record, sinceMs)),
    olderOpen: (records) => availability.ask(() => readOlderOpen(store.db, records)),
    olderUnsettled: (records) => availability.ask(() => readOlderUnsettled(store.db, records)),
    stillOpen: (records) => availability.ask(() => readStillOpen(store.db, records)),
    takeOver: () => availability.ask(() => takeOver(lease.instance())),
    findAbandoned: (isAttended) => availability.ask(() => abandoned.find(lease.instance(), isAttended)),
    askFor: (batch) => availability.ask(() => askForBatch(store.db, batch, lease.instance())),
    handOver: (batches) => availability.ask(() => handOverBatches(store, batches, lease.instance())),
    due: (nowMs, limit) => availability.ask(() => readDue(store.db, nowMs, limit)),
    readNote: (name) => availability.ask(() => readNote(store.db, name)),
    writeNote: (name, text) => availability.ask(() => writeNote(store.db, name, text)),
    balances: () => availability.ask(() => readBalances(store.db)),
    unsettled: () => availability.ask(() => readUnsettled(store.db)),
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
    close: () => (closed ??= close()),
  }
}

/** Repeats `act` until it is stopped; a failure has been told and ends nothing. */
function repeat(clock: WallClock, everyMs: number, act: () => Promise<unknown>): () => void {
  let cancel = (): void => undefined
  const plan = (): void => {
    cancel = clock.after(everyMs, () => {
      void act().catch(() => undefined)
      plan()
    })
  }
  plan()
  return () => cancel()
}

const unexpected = (result: OperationResult): AdapterError => {
  const kind = typeof result === 'string' ? result : 'kind' in result ? result.kind : 'reopen'
  return new AdapterError('ADP_INTERNAL', `Internal error: unexpected journal response (kind "${kind}").`)
}

const lost = (): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_LOST',
    'Another instance has taken this batch over and finishes it. Its records may have been applied: send the same batch again for the answer.',
  )
