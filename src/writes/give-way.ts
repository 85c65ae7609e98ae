import type { QueueKey } from '../upstream/index.ts'
import type { WriteContext } from './context.ts'

/**
 * How long a batch whose credentials were not accepted keeps newer records of its keys waiting. It is never overtaken: what of it has
 * not left by then is not sent any more.
 */
const GIVE_WAY_MS = 2_000

/** A watch over a batch while its credentials are not accepted. */
export interface GiveWay {
  /** Resolves once newer records have waited long enough; never, where the credentials are accepted before. */
  readonly due: Promise<void>
  stop(): void
}

/** Watches a batch whose records are open; undefined: its credentials were accepted before. */
export function watchGiveWay(
  { journal, clock }: Pick<WriteContext, 'journal' | 'clock'>,
  batch: number,
  queueKey: QueueKey,
): GiveWay | undefined {
  if (queueKey.isAccepted()) return undefined
  let cancel = (): void => undefined
  let isStopped = false
  const due = new Promise<void>((resolve) => {
    const look = async (): Promise<void> => {
      if (queueKey.isAccepted()) return
      // A journal that cannot be read is asked again.
      const waiting = await journal.blocking([batch]).catch(() => [])
      if (isStopped || queueKey.isAccepted()) return
      if (waiting.length > 0) resolve()
      else wait()
    }
    const wait = (): void => {
      cancel = clock.after(GIVE_WAY_MS, () => void look())
    }
    wait()
  })
  return {
    due,
    stop: () => {
      isStopped = true
      cancel()
    },
  }
}
