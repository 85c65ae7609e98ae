import { setImmediate as nextTurn } from 'node:timers/promises'

import { endOfNeighbours, isConfirmed } from '../core/neighbours.ts'
import type { RowWriter, WrittenOutcome } from '../core/rows.ts'
import { DROP_SUMS, insertedBatchColumns } from '../schema/row-sums.ts'
import { batchTables } from '../schema/tables.ts'
import type { LedgerChanges } from '../store/ledger-changes.ts'
import { encodeMarks } from '../store/mark-hash.ts'
import type { BeginOperation } from '../store/operations.ts'
import { sealAside } from '../store/seal.ts'
import type { JournalKey } from '../store/store.ts'
import { byteArrays, bytes, literal, numbers, texts } from './literals.ts'
import type { StatementQueue } from './statement-queue.ts'
import { insertSealed } from './statements.ts'

export interface WriterOptions {
  readonly queue: StatementQueue
  readonly key: JournalKey | undefined
  readonly hashKeys: (keys: readonly string[]) => Buffer
  readonly nowMs: number
}

/** What writes the rows of one transaction: `flush` queues what is gathered over batches. */
export interface QueuedWriter extends RowWriter {
  flush(): void
  /** Adds to the totals, in a row of this writer's own: two that settle at the same time do not wait for each other. */
  addToLedger(ledger: LedgerChanges, slot: number): void
}

type Gathered = WrittenOutcome & { readonly batch: number; readonly last: number }

/** Records whose keys are hashed, and that are written, in one turn of the event loop. */
const RECORDS_PER_STATEMENT = 2_000
/** Blobs of this size go as they are: as text each byte takes two. */
const LARGE_BYTES = 65_536

/** Creates what writes the rows of one transaction, each when the queue is sent. */
export function createRowWriter({ queue, key, hashKeys, nowMs }: WriterOptions): QueuedWriter {
  /** Confirmed records next to each other. */
  let confirmed: (readonly [batch: number, first: number, last: number])[] = []
  let marks: Buffer[] = []
  /** All other outcomes. */
  let outcomes: Gathered[] = []
  let counts: (readonly [batch: number, open: number, active: number])[] = []
  let inactive: number[] = []
  const writeOutcomes = (): void => {
    if (confirmed.length > 0) queue.add('confirm', ...columnsOf(confirmed), String(nowMs), byteArrays(marks))
    confirmed = []
    marks = []
    const others = outcomes
    outcomes = []
    if (others.length === 0) return
    const [batches = '', positions = '', last = '', states = '', again = '', dead = '', superseded = ''] =
      columnsOf(
        others.map((one) => [
          ...[one.batch, one.position, one.last],
          ...[one.state, one.again, one.deadLetter, one.superseded],
        ]),
      )
    const reasons = texts(others.map(({ reason }) => reason))
    const outcome = [states, again, reasons, dead, superseded]
    queue.add('settle', batches, positions, last, ...outcome, String(nowMs))
  }
  const insertRecords = (batch: number, { keys, refused }: BeginOperation): void => {
    const now = String(nowMs)
    for (let from = 0; from < keys.length; from += RECORDS_PER_STATEMENT) {
      const part =
        keys.length <= RECORDS_PER_STATEMENT ? keys : keys.slice(from, from + RECORDS_PER_STATEMENT)
      queue.addMade('insertRecords', async () => {
        if (from > 0) await nextTurn()
        const hashed = bytes(hashKeys(part))
        return [String(batch), String(from), hashed, numbers(refused.positions), texts(refused.reasons), now]
      })
    }
  }
  return {
    insertBatch: (row) => {
      const columns = insertedBatchColumns.map((column) => {
        const value = row[column]
        return value instanceof Uint8Array ? bytes(value) : literal(value)
      })
      queue.add('insertBatch', String(row.id), ...columns)
      insertRecords(row.id, row.operation)
    },
    dropSums: (batch) => {
      for (const text of DROP_SUMS) queue.addText(`${text} = ${batch}`)
    },
    seal: (place, of, plain) => {
      queue.addMade(place, async () => {
        const { keyId, body } = await sealAside(plain, key, place, of)
        if (body.length < LARGE_BYTES) return [String(of.batch), literal(keyId), bytes(body)]
        const values = [of.batch, keyId, Buffer.from(body.buffer, body.byteOffset, body.byteLength)]
        return { text: insertSealed[place], values }
      })
    },
    retire: (batches) => {
      queue.add('retire', numbers(batches))
    },
    accept: (batch) => {
      queue.add('accept', String(batch))
    },
    forget: (batch) => {
      for (const [table, column] of batchTables)
        queue.addText(`delete from ${table} where ${column} = ${batch}`)
    },
    noteAnswered: (batches) => {
      queue.add('noteAnswered', numbers(batches))
    },
    settle: (batch, settled) => {
      for (let from = 0, end = 0; from < settled.length; from = end) {
        end = endOfNeighbours(settled, from)
        const [first, last] = [settled[from], settled[end - 1]]
        if (first === undefined || last === undefined) return
        if (isConfirmed(first)) {
          confirmed.push([batch, first.position, last.position])
          const group = settled.slice(from, end).map(({ mark }) => mark)
          marks.push(encodeMarks(hashKeys, group))
        } else outcomes.push({ batch, ...first, last: last.position })
      }
    },
    supersede: (batch, positions) => {
      writeOutcomes()
      queue.add('supersede', String(batch), numbers(positions), String(nowMs))
    },
    reopen: (batch, positions) => {
      queue.add('reopen', String(batch), numbers(positions))
    },
    setOwner: (batch, instance) => {
      queue.add('setOwner', String(batch), String(instance))
    },
    addCounts: (...change) => {
      counts.push(change)
    },
    dropCredentials: (batch) => {
      inactive.push(batch)
    },
    olderOpen: (batch, positions) => {
      const found = queue.add<{ position: number; batch: number; older: number }>(
        'olderOpen',
        String(batch),
        numbers(positions),
      )
      return () => found().map((one) => [one.position, one.batch, one.older] as const)
    },
    flush: () => {
      writeOutcomes()
      if (counts.length > 0) queue.add('addCounts', ...columnsOf(counts))
      if (inactive.length > 0) queue.add('dropCredentials', numbers(inactive))
      counts = []
      inactive = []
    },
    addToLedger: (ledger, slot) => {
      const rows = ledger.list()
      if (rows.length === 0) return
      const totals = columnsOf(rows.map(([, changes]) => changes))
      queue.add('ledger', texts(rows.map(([partner]) => partner)), String(slot), ...totals)
    },
  }
}

/** Rows of numbers as an array for each column. */
const columnsOf = (rows: readonly (readonly (number | null)[])[]): string[] =>
  (rows[0] ?? []).map((_, column) => numbers(rows.map((row) => row[column] ?? null)))
