import type { SettleOperation } from '../store/operations.ts'
import { packAnswers } from '../store/answer-pack.ts'
import type { LedgerChanges } from '../store/ledger-changes.ts'
import { seal } from '../store/seal.ts'
import type { StoreSecrets } from '../store/store.ts'
import type { GroupStatements } from './statements.ts'

/** The settles of one transaction. */
export interface Settling {
  /**
   * `late`: it is lost, and rows of it are changed already; the transaction has to be run again without it. `lost`: nothing of
   * it was done.
   */
  settle(operation: SettleOperation): 'done' | 'lost' | 'late'
  /** Does what is done once per batch. Before anything else than a settle, and before the end. */
  flush(): void
}

/** What the settles of one batch have in common; written when all of the group are known. */
interface BatchChange {
  readonly partner: string
  readonly owned: boolean
  open: number
  live: number
  firstConfirmed: number
  lastConfirmed: number
  readonly positions: number[]
  readonly answers: (string | undefined)[]
}

const [CONFIRMED, REFUSED, PARKED] = [1, 2, 4]

/** Creates the settles of one transaction of `instance`. */
export function createSettling(
  on: GroupStatements,
  secrets: StoreSecrets,
  ledger: LedgerChanges,
  { instance, nowMs }: { readonly instance: number; readonly nowMs: number },
): Settling {
  const changes = new Map<number, BatchChange>()
  const changeOf = (batch: number): BatchChange | undefined => {
    const known = changes.get(batch)
    if (known !== undefined) return known
    const row = on.batch.get(batch)
    if (row === undefined) return undefined
    const change = {
      partner: String(row['partner']),
      owned: row['owner'] === instance,
      open: 0,
      live: 0,
      firstConfirmed: Infinity,
      lastConfirmed: -1,
      positions: [],
      answers: [],
    }
    changes.set(batch, change)
    return change
  }
  /** The same outcome once more, after an answer that got lost, is no fault. */
  const isKept = (operation: SettleOperation, index: number): boolean => {
    const row = on.record.get(operation.batch, operation.positions[index] ?? -1)
    return row?.['state'] === operation.states[index] && row?.['reason'] === operation.reasons[index]
  }
  const supersede = (batch: number, from: number, to: number): void => {
    // Each once, also where several records of its key were confirmed. With setReturnArrays each row is an array, which the types do not say.
    for (const row of on.superseded.all(batch, from, to) as unknown as number[][]) {
      const [older = 0, position = 0, state = 0] = row
      const after = state === PARKED ? REFUSED : state
      on.supersede.run(after, nowMs, older, position)
      const change = changeOf(older)
      if (change === undefined) continue
      change.live -= 1
      if (after !== state) ledger.move(change.partner, state, after)
    }
  }
  return {
    settle: (operation) => {
      const { batch, positions, states, again, reasons, deadLetters, answers } = operation
      const change = changeOf(batch)
      if (change === undefined) return 'lost'
      if (!change.owned) return positions.every((_, index) => isKept(operation, index)) ? 'done' : 'lost'
      for (let index = 0; index < positions.length; index += 1) {
        const position = positions[index] ?? -1
        const state = states[index] ?? REFUSED
        const next = again[index] ?? null
        const live = next === null ? 0 : 1
        const { changes: changed } = on.settle.run(
          state,
          live,
          next,
          reasons[index] ?? null,
          deadLetters[index] ?? 0,
          nowMs,
          batch,
          position,
        )
        if (changed === 0) {
          if (isKept(operation, index)) continue
          return 'late'
        }
        ledger.move(change.partner, 0, state)
        change.open -= 1
        change.live -= 1 - live
        change.positions.push(position)
        change.answers.push(answers[index])
        if (state !== CONFIRMED) continue
        if (position < change.firstConfirmed) change.firstConfirmed = position
        if (position > change.lastConfirmed) change.lastConfirmed = position
      }
      return 'done'
    },
    flush: () => {
      for (const [batch, change] of [...changes]) {
        if (change.lastConfirmed >= 0) supersede(batch, change.firstConfirmed, change.lastConfirmed)
      }
      for (const [batch, change] of changes) {
        if (change.open !== 0 || change.live !== 0) {
          const left = on.count.get(change.open, change.live, batch)
          if (left?.['live'] === 0) on.dropCredentials.run(batch)
        }
        const pack = packAnswers(change.positions, change.answers)
        if (pack === undefined) continue
        const { keyId, body } = seal(pack, secrets.key, 'answers', batch)
        on.insertAnswers.run(batch, keyId, body)
      }
      changes.clear()
    },
  }
}
