import { randomBytes } from 'node:crypto'

import type { Balance, Begun, Journal, NewBatch, RecordRef, RecordState } from './journal.ts'

/** What is in memory of a batch while one of its records is open; a settled record's key is undefined. */
interface OpenBatch {
  readonly partner: string
  readonly keys: (string | undefined)[]
  open: number
}

/** Nobody else can have it: it always holds. */
const LEASE = 1
const NOTHING: ReadonlyMap<number, readonly RecordRef[]> = new Map()

/**
 * Creates the journal of `journal: none`: no store at all. It keeps the order of writes of one key within this process and
 * the totals since the start; no batch is ever `known`, nothing can be loaded, and nothing is due.
 */
export function createNoJournal(): Journal {
  const linkSecret = randomBytes(32)
  let batches = 0
  let latestMs = 0
  const open = new Map<number, OpenBatch>()
  /** The open records of each key, oldest first. */
  const byKey = new Map<string, RecordRef[]>()
  const totals = new Map<string, Record<RecordState, number>>()

  const totalsOf = (partner: string): Record<RecordState, number> => {
    const known = totals.get(partner)
    if (known !== undefined) return known
    const fresh = { open: 0, confirmed: 0, refused: 0, unknown: 0, parked: 0 }
    totals.set(partner, fresh)
    return fresh
  }
  const begin = (batch: NewBatch): Begun => {
    const number = ++batches
    latestMs = Math.max(latestMs, batch.receivedMs)
    const counts = totalsOf(batch.partner)
    const keys: (string | undefined)[] = []
    let after: Map<number, readonly RecordRef[]> | undefined
    /** What the records of each key wait for: one list for all of them. */
    let olderOf: Map<string, readonly RecordRef[]> | undefined
    let sent = 0
    batch.records.forEach(({ key, refused }, position) => {
      if (refused !== undefined) {
        keys.push(undefined)
        return
      }
      keys.push(key)
      sent += 1
      const ref = { batch: number, position }
      const before = byKey.get(key)
      if (before === undefined) {
        byKey.set(key, [ref])
        return
      }
      // Records of the same batch keep their order without the journal.
      const older = olderOf?.get(key) ?? before.filter((one) => one.batch !== number)
      olderOf ??= new Map()
      olderOf.set(key, older)
      if (older.length > 0) (after ??= new Map()).set(position, older)
      before.push(ref)
    })
    counts.open += sent
    counts.refused += keys.length - sent
    if (sent > 0) open.set(number, { partner: batch.partner, keys, open: sent })
    return {
      kind: 'new',
      batch: number,
      lease: LEASE,
      receivedMs: latestMs,
      after: after ?? NOTHING,
      idsReused: false,
    }
  }
  const release = (batch: number, position: number, key: string): void => {
    const waiting = byKey.get(key)
    if (waiting === undefined || waiting.length === 1) {
      byKey.delete(key)
      return
    }
    const index = waiting.findIndex((one) => one.batch === batch && one.position === position)
    waiting.splice(index, 1)
  }
  const isOpen = ({ batch, position }: RecordRef): boolean => open.get(batch)?.keys[position] !== undefined

  return {
    durable: false,
    linkSecret,
    readBackUntilMs: 0,
    begin: (batch) => Promise.resolve(begin(batch)),
    find: () => Promise.resolve(undefined),
    answered: () => undefined,
    settle: (batch, outcomes) => {
      const kept = open.get(batch)
      if (kept === undefined) return Promise.resolve()
      const counts = totalsOf(kept.partner)
      for (const { position, state } of outcomes) {
        const key = kept.keys[position]
        if (key === undefined) continue
        kept.keys[position] = undefined
        kept.open -= 1
        counts.open -= 1
        counts[state] += 1
        release(batch, position, key)
      }
      if (kept.open === 0) open.delete(batch)
      return Promise.resolve()
    },
    reopen: () => Promise.resolve({ lease: LEASE, after: NOTHING }),
    load: () => Promise.resolve(undefined),
    stillOpen: (records) => Promise.resolve(records.filter(isOpen)),
    blocking: () => Promise.resolve([]),
    takeOver: () => Promise.resolve([]),
    findAbandoned: () => Promise.resolve([]),
    due: () => Promise.resolve([]),
    readNote: () => Promise.resolve(undefined),
    writeNote: () => Promise.resolve(),
    balances: () => Promise.resolve([...totals].map(([partner, counts]) => toBalance(partner, counts))),
    lease: () => LEASE,
    renewLease: () => Promise.resolve(LEASE),
    isAvailable: () => true,
    close: () => Promise.resolve(),
  }
}

function toBalance(partner: string, counts: Readonly<Record<RecordState, number>>): Balance {
  const { open, confirmed, refused, unknown, parked } = counts
  return { partner, received: open + confirmed + refused + unknown + parked, ...counts }
}
