import { randomBytes } from 'node:crypto'

import { ofEachState, recordStates } from './lifecycle.ts'
import type {
  Balance,
  BeginResult,
  ConfirmedMark,
  Journal,
  KnownMarks,
  NewBatch,
  RecordRef,
  RecordState,
} from './journal.ts'

/** An open record, linked with the older and the newer open record of the same key. */
interface Entry extends RecordRef {
  readonly key: string
  older: Entry | undefined
  newer: Entry | undefined
  /** The nearest older record in another batch when this record was begun. The records of one key in a batch share one list. */
  readonly after: readonly RecordRef[] | undefined
}

interface KnownMark extends RecordRef {
  readonly mark: ConfirmedMark
}

/** A batch with open records. The entry of a settled record is `undefined`. */
interface OpenBatch {
  readonly partner: string
  readonly entries: (Entry | undefined)[]
  open: number
}

/**
 * The journal remembers the marks of at least this many keys and of at most twice as many. The least recently confirmed keys are evicted
 * first.
 */
const REMEMBERED_KEYS = 2_500
const REMEMBERED_MARKS = 3

/** The number of the lease. This process is the only instance, so the lease never ends. */
const LEASE = 1
const NOTHING: ReadonlyMap<number, readonly RecordRef[]> = new Map()

/**
 * Creates the journal for `journal.url: none`, which has no store. The journal keeps the order of writes of one key within this process,
 * and the totals since the start. This journal recognises no batch, loads nothing, and has no due records.
 */
export function createNoJournal(): Journal {
  const linkSecret = randomBytes(32)
  let batches = 0
  let latestMs = 0
  const open = new Map<number, OpenBatch>()
  const newest = new Map<string, Entry>()
  const totals = new Map<string, Record<RecordState, number>>()
  /** The latest marks of each key, oldest first. `earlierMarks` contains the keys that are evicted next. */
  let marks = new Map<string, readonly KnownMark[]>()
  let earlierMarks = marks
  const marksOf = (key: string): readonly KnownMark[] | undefined => marks.get(key) ?? earlierMarks.get(key)
  const remember = (key: string, mark: KnownMark): void => {
    const known = marksOf(key)
    marks.set(key, known === undefined ? [mark] : [...known, mark].slice(-REMEMBERED_MARKS))
    if (marks.size < REMEMBERED_KEYS) return
    earlierMarks = marks
    marks = new Map()
  }

  const totalsOf = (partner: string): Record<RecordState, number> => {
    const known = totals.get(partner)
    if (known !== undefined) return known
    const fresh = ofEachState(() => 0)
    totals.set(partner, fresh)
    return fresh
  }
  const begin = (batch: NewBatch): BeginResult => {
    const number = ++batches
    latestMs = Math.max(latestMs, batch.receivedMs)
    const counts = totalsOf(batch.partner)
    const entries: (Entry | undefined)[] = []
    let after: Map<number, readonly RecordRef[]> | undefined
    let sent = 0
    batch.records.forEach(({ key, refused }, position) => {
      if (refused !== undefined) {
        entries.push(undefined)
        return
      }
      sent += 1
      const older = newest.get(key)
      // All records of one key in a batch wait for the same older record, because the caller keeps the records of one batch in order.
      const before = older === undefined || older.batch === number ? older?.after : [toRef(older)]
      if (before !== undefined) (after ??= new Map()).set(position, before)
      const entry: Entry = { batch: number, position, key, older, newer: undefined, after: before }
      if (older !== undefined) older.newer = entry
      newest.set(key, entry)
      entries.push(entry)
    })
    counts.open += sent
    counts.refused += entries.length - sent
    if (sent > 0) open.set(number, { partner: batch.partner, entries, open: sent })
    return {
      kind: 'new',
      batch: number,
      lease: LEASE,
      receivedMs: latestMs,
      after: after ?? NOTHING,
      idsReused: false,
    }
  }
  const release = ({ key, older, newer }: Entry): void => {
    if (older !== undefined) older.newer = newer
    if (newer !== undefined) newer.older = older
    else if (older !== undefined) newest.set(key, older)
    else newest.delete(key)
  }
  const settle: Journal['settle'] = (batch, outcomes) => {
    const unsettled = open.get(batch)
    if (unsettled === undefined) return Promise.resolve()
    const counts = totalsOf(unsettled.partner)
    for (const { position, state, mark } of outcomes) {
      const entry = unsettled.entries[position]
      if (entry === undefined) continue
      unsettled.entries[position] = undefined
      unsettled.open -= 1
      counts.open -= 1
      counts[state] += 1
      release(entry)
      if (state === 'confirmed' && mark !== undefined) remember(entry.key, { mark, batch, position })
    }
    if (unsettled.open === 0) open.delete(batch)
    return Promise.resolve()
  }
  const entryOf = ({ batch, position }: RecordRef): Entry | undefined => open.get(batch)?.entries[position]

  return {
    durable: false,
    linkSecret,
    readBackUntilMs: 0,
    begin: (batch) => Promise.resolve(begin(batch)),
    answered: () => undefined,
    settle,
    forget: (batch) => {
      const positions = open.get(batch)?.entries.keys() ?? []
      return settle(
        batch,
        [...positions].map((position) => ({ position, state: 'refused', answer: undefined })),
      )
    },
    reopen: () => Promise.resolve({ lease: LEASE, after: NOTHING }),
    load: () => Promise.resolve(undefined),
    knownMarks: (record) => {
      const entry = entryOf(record)
      const known = entry === undefined ? [] : (marksOf(entry.key) ?? [])
      const isNewer = (one: RecordRef): boolean =>
        one.batch > record.batch || (one.batch === record.batch && one.position > record.position)
      const newer = entry?.newer === undefined ? 'none' : 'open'
      return Promise.resolve({
        confirmedAt: (externalId) =>
          known
            .filter((one) => one.mark.externalId === externalId && !isNewer(one))
            .map(({ mark }) => mark.recordedMs),
        // These lists are always empty, because this journal forgets a record once the record is settled.
        ...{ lost: [], lostBefore: [] },
        newer: known.some(isNewer) ? 'confirmed' : newer,
      } satisfies KnownMarks)
    },
    olderOpen: (records) =>
      Promise.resolve(
        records.map((record) => {
          const older = entryOf(record)?.older
          return older === undefined ? undefined : toRef(older)
        }),
      ),
    olderUnsettled: () => Promise.resolve([]),
    stillOpen: (records) => Promise.resolve(records.filter((record) => entryOf(record) !== undefined)),
    blocking: () => Promise.resolve([]),
    takeOver: () => Promise.resolve([]),
    findAbandoned: () => Promise.resolve([]),
    askFor: () => Promise.resolve(),
    handOver: () => Promise.resolve([]),
    due: () => Promise.resolve([]),
    readNote: () => Promise.resolve(undefined),
    writeNote: () => Promise.resolve(),
    balances: () => Promise.resolve([...totals].map(([partner, counts]) => toBalance(partner, counts))),
    unsettled: () =>
      Promise.resolve(
        new Map(
          [...totals].flatMap(([partner, counts]) => (counts.open > 0 ? [[partner, counts.open]] : [])),
        ),
      ),
    deadLetters: () => Promise.resolve(new Map()),
    lease: () => LEASE,
    renewLease: () => Promise.resolve(LEASE),
    isAvailable: () => true,
    isDamaged: () => false,
    close: () => Promise.resolve(),
  }
}

const toRef = ({ batch, position }: RecordRef): RecordRef => ({ batch, position })

function toBalance(partner: string, counts: Readonly<Record<RecordState, number>>): Balance {
  return { partner, received: recordStates.reduce((sum, state) => sum + counts[state], 0), ...counts }
}
