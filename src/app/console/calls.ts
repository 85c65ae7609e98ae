import type { ConsoleEngine } from '../../console/data/engine.ts'
import type { Unsealing } from '../../journal/index.ts'

// What the thread of the console's data and the main thread call each other for.

/** What the thread is started with. */
export interface ConsoleThreadStart {
  readonly url: string
  readonly how: Unsealing
  /** The nice value of the thread. */
  readonly nice: number
}

/** What the thread answers. */
export interface ConsoleThreadCalls extends Omit<ConsoleEngine, 'work' | 'start' | 'close' | 'servedMs'> {
  /** Resolves once nothing of it uses the journal any longer. */
  readonly close: () => Promise<void>
}

/** What the main thread answers. */
export interface ConsoleMainCalls {
  /** The store of the console cannot be opened or written; it is tried again. */
  readonly failed: () => void
}
