import { AdapterError } from '../../errors.ts'
import type {
  BeginOperation,
  ForgetOperation,
  Operation,
  OperationResult,
  ReopenOperation,
  SettleOperation,
} from '../store/operations.ts'
import { begin } from './begin.ts'
import { forget } from './forget.ts'
import { reopen } from './reopen.ts'
import type { BatchRows, BeginRows, ChangeContext, Later, SettleRows } from './rows.ts'
import { settle } from './settle.ts'

/** Operations that are made together: they read once, then write. */
export type Run =
  | { readonly kind: 'begin'; readonly operations: readonly BeginOperation[] }
  | { readonly kind: 'settle'; readonly operations: readonly SettleOperation[] }
  | { readonly kind: 'batch'; readonly operation: ReopenOperation | ForgetOperation }
  | { readonly kind: 'note'; readonly batches: readonly number[] }

/** A run with the rows that were read for it. */
export type ReadRun =
  | (Extract<Run, { kind: 'begin' }> & { readonly rows: BeginRows })
  | (Extract<Run, { kind: 'settle' }> & { readonly rows: SettleRows })
  | (Extract<Run, { kind: 'batch' }> & { readonly rows: BatchRows | undefined })
  | Extract<Run, { kind: 'note' }>

/** Which records forbid a batch to be opened again. */
export const standingFor = (operation: ReopenOperation | ForgetOperation): 'standing' | 'standingOnV3' =>
  operation.kind === 'reopen' && operation.beforeRelay ? 'standingOnV3' : 'standing'

/**
 * Divides operations into runs: begins that follow each other read once, and so do settles. One that takes the place of another batch
 * reads by itself: those before it may be newer than that batch.
 */
export function runsOf(operations: readonly Operation[]): readonly Run[] {
  const runs: Run[] = []
  let begins: BeginOperation[] | undefined
  let settles: SettleOperation[] | undefined
  for (const operation of operations) {
    if (operation.kind !== 'begin' || operation.instead !== undefined) begins = undefined
    if (operation.kind !== 'settle') settles = undefined
    if (operation.kind === 'begin') {
      if (begins === undefined) runs.push({ kind: 'begin', operations: (begins = []) })
      begins.push(operation)
      if (operation.instead !== undefined) begins = undefined
    } else if (operation.kind === 'settle') {
      if (settles === undefined) runs.push({ kind: 'settle', operations: (settles = []) })
      settles.push(operation)
    } else if (operation.kind === 'answered') runs.push({ kind: 'note', batches: operation.batches })
    else if (operation.kind === 'probe') runs.push({ kind: 'note', batches: [] })
    else runs.push({ kind: 'batch', operation })
  }
  return runs
}

/** Makes the changes of a run from the rows that were read; returns a result for each operation, in their order. */
export function makeChanges(context: ChangeContext, run: ReadRun): readonly Later<OperationResult>[] {
  switch (run.kind) {
    case 'begin':
      return begin(context, run.operations, run.rows)
    case 'settle':
      return settle(context, run.operations, run.rows).map((result) => () => {
        if (result !== 'again') return result
        throw new AdapterError('ADP_INTERNAL', 'Internal error: the rows of settles were read for others.')
      })
    case 'batch':
      if (run.operation.kind === 'reopen') return [reopen(context, run.operation, run.rows)]
      return [forget(context, run.operation, run.rows)].map((result) => () => result)
    case 'note':
      if (run.batches.length > 0) context.write.noteAnswered(run.batches)
      return [() => 'done']
  }
}
