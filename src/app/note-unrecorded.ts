import type { Clock } from '../clock.ts'

/** Tells the store of stages which partners had writes relayed that the journal does not know. */
export interface UnrecordedNotes {
  note(partner: string): void
  /** Tries once more, and gives up what cannot be told. */
  stop(): Promise<void>
}

/** How often the store is tried while it cannot be reached. */
const AGAIN_AFTER_MS = 1_000

/**
 * Creates the notes of one process. The journal is away when there is something to note, so the latest time of each partner is kept until
 * the store takes it. A process that ends before was unclean, which the store takes for the same.
 */
export function createUnrecordedNotes(
  store: { noteUnrecorded(partner: string, agoMs: number): Promise<void> },
  clock: Clock,
): UnrecordedNotes {
  /** When the last one was relayed, by the clock, ms. */
  const latest = new Map<string, number>()
  let cancel: (() => void) | undefined
  let telling = false
  let isStopped = false
  const tell = async (): Promise<void> => {
    cancel = undefined
    telling = true
    for (const [partner, atMs] of latest) {
      const isTold = await store.noteUnrecorded(partner, Math.max(0, clock.nowMs() - atMs)).then(
        () => true,
        () => false,
      )
      if (isTold && latest.get(partner) === atMs) latest.delete(partner)
    }
    telling = false
    if (latest.size > 0 && !isStopped) cancel = clock.after(AGAIN_AFTER_MS, () => void tell())
  }
  return {
    note: (partner) => {
      latest.set(partner, clock.nowMs())
      if (!telling && cancel === undefined && !isStopped) void tell()
    },
    stop: async () => {
      isStopped = true
      cancel?.()
      if (latest.size > 0) await tell()
    },
  }
}
