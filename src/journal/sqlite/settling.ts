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
  readonly ownerId: string
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
      ownerId: String(row['owner_id']),
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
  /** The same outcome once more, after an answer that got lost, is no error. */
  const isKept = (operation: SettleOperation, index: number): boolean => {
    const row = on.record.get(operation.batch, operation.positions[index] ?? -1)
    return row?.['state'] === operation.states[index] && row?.['reason'] === operation.reasons[index]
  }
  /** Writes the outcomes of one run, and returns how many of its records were open. */
  const write = (operation: SettleOperation, from: number, end: number): number => {
    const { batch, positions, states, retries, reasons, deadLetters, superseded } = operation
    const first = positions[from] ?? -1
    if (isConfirmed(operation, from)) {
      return Number(on.confirm.run(nowMs, batch, first, first + end - from - 1).changes)
    }
    const next = retries[from] ?? null
    const outcome = [states[from] ?? REFUSED, next === null ? 0 : 1, next, reasons[from] ?? null] as const
    const flags = [deadLetters[from] ?? 0, superseded[from] ?? 0] as const
    return Number(
      on.settle.run(...outcome, ...flags, nowMs, ...outcome.slice(0, 3), ...flags, batch, first).changes,
    )
  }
  const supersede = (batch: number, from: number, to: number): void => {
    // Each once, also where several records of its key were confirmed. With setReturnArrays each row is an array, which the types do not say.
    for (const row of on.superseded.all(batch, from, to) as unknown as number[][]) {
      const [older = 0, position = 0, state = 0] = row
      const after = state === PARKED ? REFUSED : state
      on.supersede.run(after, nowMs, after, older, position)
      const change = changeOf(older)
      if (change === undefined) continue
      change.live -= 1
      if (after !== state) ledger.move(change.partner, state, after)
    }
  }
  return {
    settle: (operation) => {
      const { batch, positions, states, retries, answers } = operation
      const change = changeOf(batch)
      if (change === undefined) return 'lost'
      const isOwn = change.owned && (operation.lease === undefined || operation.lease === instance)
      if (!isOwn) return positions.every((_, index) => isKept(operation, index)) ? 'done' : 'lost'
      for (let from = 0, end = 0; from < positions.length; from = end) {
        end = endOfRun(operation, from)
        const state = states[from] ?? REFUSED
        const changed = write(operation, from, end)
        for (let index = from; changed < end - from && index < end; index += 1) {
          if (!isKept(operation, index)) return 'late'
        }
        if (changed === 0) continue
        ledger.move(change.partner, 0, state, changed)
        change.open -= changed
        if ((retries[from] ?? null) === null) change.live -= changed
        for (let index = from; index < end; index += 1) {
          change.positions.push(positions[index] ?? -1)
          change.answers.push(answers[index])
        }
        if (state !== CONFIRMED) continue
        change.firstConfirmed = Math.min(change.firstConfirmed, positions[from] ?? 0)
        change.lastConfirmed = Math.max(change.lastConfirmed, positions[end - 1] ?? 0)
      }
      return 'done'
    },
    flush: () => {
      for (const [batch, change] of [...changes]) {
        if (change.lastConfirmed >= 0) supersede(batch, change.firstConfirmed, change.lastConfirmed)
      }
      for (const [batch, change] of changes) {
        if (change.open !== 0 || change.live !== 0) {
          const left = on.count.get(change.open, change.live, change.open, change.live, batch)
          if (left?.['live'] === 0) on.dropCredentials.run(batch)
        }
        const pack = packAnswers(change.positions, change.answers)
        if (pack === undefined) continue
        const { keyId, body } = seal(pack, secrets.key, 'answers', { batch, owner: change.ownerId })
        on.insertAnswers.run(batch, keyId, body)
      }
      changes.clear()
    },
  }
}

/** True for a record that was taken, and of which nothing else is to be kept. */
function isConfirmed({ states, retries, reasons, deadLetters }: SettleOperation, index: number): boolean {
  return (
    states[index] === CONFIRMED &&
    retries[index] === null &&
    reasons[index] === null &&
    deadLetters[index] === 0
  )
}

/** Where the run ends that begins at `from`: records next to each other that were confirmed, or one of any other outcome. */
function endOfRun(operation: SettleOperation, from: number): number {
  const { positions } = operation
  let end = from + 1
  if (!isConfirmed(operation, from)) return end
  while (positions[end] === (positions[end - 1] ?? 0) + 1 && isConfirmed(operation, end)) end += 1
  return end
}
