import { isWriteKind, type RequestKind, type StageEntry } from '../rollout/index.ts'
import type { LiveSeen, SeenWrite } from '../rollout/seen/live-seen.ts'

/** What the advice on the next step of a partner counts of one write, once it is over. */
export interface WriteNote {
  decoded(records: SeenWrite['records']): void
  /** V2 serves it as it is. */
  unreadable(): void
  /** Counts it, if a service has accepted the credentials of its client by now. */
  end(): void
}

export interface NotedRequest {
  readonly kind: RequestKind
  readonly partner: string
  readonly unit: string
  readonly entry: Pick<StageEntry, 'side' | 'stage' | 'revision'>
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  readonly isAccepted: () => boolean
}

const uncounted: WriteNote = { decoded: () => undefined, unreadable: () => undefined, end: () => undefined }

/** The note of a request; of reads, and at `complete`, nothing is counted, since no step follows. */
export function noteWrite(
  { seen }: { readonly seen: LiveSeen },
  { kind, partner, unit, entry, receivedMs, isAccepted }: NotedRequest,
): WriteNote {
  const { side, stage, revision } = entry
  if (!isWriteKind(kind) || stage === 'complete') return uncounted
  let count = (): void => undefined
  return {
    decoded: (records) => {
      count = () => seen.wrote({ partner, unit, side, revision, receivedMs, records })
    },
    unreadable: () => {
      count = () => seen.unreadable(partner, revision)
    },
    end: () => {
      if (isAccepted()) count()
    },
  }
}
