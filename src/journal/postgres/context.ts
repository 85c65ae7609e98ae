import type { JournalKey } from '../store/store.ts'

/** What the statements of one group have in common. */
export interface WriteContext {
  readonly instance: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  readonly key: JournalKey | undefined
  readonly hashKey: (key: string) => Uint8Array
  readonly replayForMs: number
  readonly forgottenBatch: number
}
