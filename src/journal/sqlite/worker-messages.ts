import type { Damage } from '../store/damage.ts'
import type { Committed, Group, StoreSecrets } from '../store/store.ts'

/** The options of the database thread. */
export interface WorkerStart {
  readonly path: string
  readonly existing: boolean
  readonly busyMs: number
  readonly replayForMs: number
}

/** Requests to the thread. Each has one response with its number. */
export type WorkerQuestion =
  | {
      readonly id: number
      readonly kind: 'query'
      readonly sql: string
      readonly parameters: readonly unknown[]
    }
  | { readonly id: number; readonly kind: 'prepare'; readonly secrets: StoreSecrets }
  | { readonly id: number; readonly kind: 'commit'; readonly group: Group }
  | { readonly id: number; readonly kind: 'close' }

/** The rows of a query, and how many it changed. */
export interface QueryAnswer {
  readonly rows: readonly Record<string, unknown>[]
  readonly changes: number | bigint
}

/** An error of SQLite as it can be sent to another thread. */
export interface WorkerFailure {
  readonly message: string
  readonly errcode: number
  readonly damage?: Damage
}

/** Responses of the thread. */
export type WorkerAnswer =
  | { readonly id: number; readonly kind: 'query'; readonly answer: QueryAnswer }
  | { readonly id: number; readonly kind: 'commit'; readonly committed: Committed }
  | { readonly id: number; readonly kind: 'done' }
  | { readonly id: number; readonly kind: 'failed'; readonly failure: WorkerFailure }
