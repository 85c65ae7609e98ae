import { endOfNeighbours, isConfirmed } from '../core/neighbours.ts'
import type { RowWriter, WrittenOutcome } from '../core/rows.ts'
import { insertedBatchColumns } from '../schema/row-sums.ts'
import { KEY_BYTES } from '../store/hash-key.ts'
import { encodeMarks } from '../store/mark-hash.ts'
import type { BeginOperation, Three } from '../store/operations.ts'
import { seal } from '../store/seal.ts'
import type { JournalKey } from '../store/store.ts'
import type { GroupStatements } from './statements.ts'

export interface WriterOptions {
  readonly on: GroupStatements
  readonly key: JournalKey | undefined
  readonly hashKeys: (keys: readonly string[]) => Buffer
  readonly nowMs: number
}

/** Creates what writes the rows of one transaction, each at once. */
export function createRowWriter({ on, key, hashKeys, nowMs }: WriterOptions): RowWriter {
  const insertRecords = (batch: number, { keys, refused }: BeginOperation): void => {
    const all = hashKeys(keys)
    // All open records between two refused ones go with one statement.
    let from = 0
    for (const [index, position] of refused.positions.entries()) {
      if (from < position) on.insertOpen.run(from, position - 1, batch, all, all, batch)
      const own = all.subarray(position * KEY_BYTES, (position + 1) * KEY_BYTES)
      on.insertRefused.run(batch, position, own, refused.reasons[index] ?? null, nowMs)
      from = position + 1
    }
    if (from < keys.length) on.insertOpen.run(from, keys.length - 1, batch, all, all, batch)
  }
  const settleAlike = (batch: number, one: WrittenOutcome, last: number): void => {
    const { position, state, again, reason, deadLetter, superseded } = one
    const live = again === null ? 0 : 1
    on.settle.run(
      ...[state, live, again, reason, deadLetter, superseded, nowMs],
      ...[state, live, again, deadLetter, superseded, batch, position, last],
    )
  }
  return {
    insertBatch: (row) => {
      on.insertBatch.run(row.id, ...insertedBatchColumns.map((column) => row[column]))
      insertRecords(row.id, row.operation)
    },
    dropSums: (batch) => {
      for (const statement of on.dropSums) statement.run(batch)
    },
    seal: (place, of, plain) => {
      const { keyId, body } = seal(plain, key, place, of)
      on[place].run(of.batch, keyId, body)
    },
    retire: (batches) => {
      for (const batch of batches) on.retire.run(batch)
    },
    accept: (batch) => {
      on.accept.run(batch)
    },
    forget: (batch) => {
      for (const statement of on.forget) statement.run(batch)
    },
    noteAnswered: (batches) => {
      on.noteAnswered.run(JSON.stringify(batches))
    },
    settle: (batch, outcomes) => {
      for (let from = 0, end = 0; from < outcomes.length; from = end) {
        end = endOfNeighbours(outcomes, from)
        const [first, last] = [outcomes[from], outcomes[end - 1]]
        if (first === undefined || last === undefined) return
        if (isConfirmed(first)) {
          const marks = encodeMarks(
            hashKeys,
            outcomes.slice(from, end).map(({ mark }) => mark),
          )
          on.confirm.run(nowMs, marks, first.position, batch, first.position, last.position)
        } else settleAlike(batch, first, last.position)
      }
    },
    supersede: (batch, positions) => {
      on.supersede.run(nowMs, batch, JSON.stringify(positions))
    },
    reopen: (batch, positions) => {
      for (const position of positions) on.reopen.run(batch, position)
    },
    setOwner: (batch, instance) => {
      on.setOwner.run(instance, instance, batch)
    },
    addCounts: (batch, open, active) => {
      on.addCounts.run(open, active, open, active, batch)
    },
    dropCredentials: (batch) => {
      on.dropCredentials.run(batch)
    },
    olderOpen: (batch, positions) => {
      // Most batches have none, which costs less to find out.
      if (on.hasOlder.get(batch) === undefined) return () => []
      const found = positions.flatMap((position): Three[] => {
        const row = on.olderOpen.get(batch, position, batch, position) as unknown as
          [number, number] | undefined
        return row === undefined ? [] : [[position, ...row]]
      })
      return () => found
    },
  }
}
