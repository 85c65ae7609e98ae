import type { Clock } from '../../clock.ts'
import { createPeriodicTask } from '../../clock/periodic-task.ts'
import { AdapterError } from '../../errors.ts'
import type { Side } from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import { codeFingerprint, countText } from './distinct-count.ts'
import {
  formatSeen,
  mergedNotes,
  nothingSeen,
  parseSeen,
  type SeenDraft,
  seenName,
  type SeenNote,
} from './seen-note.ts'

/** A write that was decoded. */
export interface SeenWrite {
  readonly partner: string
  /** Of the stage that it was served by. */
  readonly revision: number
  readonly side: Side
  readonly unit: string
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** Called at once where they are counted. A record that cannot be read has no key. */
  readonly records: () => readonly { readonly key: string | undefined; readonly code: string | undefined }[]
}

/** Notes what the advice on the next step of a partner needs to know of its writes. No text of a write is kept. */
export interface LiveSeen {
  wrote(write: SeenWrite): void
  /** V2 was sent a write that cannot be decoded. */
  unreadable(partner: string, revision: number): void
  /** What V3 says to the credentials that the partner is served with. */
  credentials(partner: string, verdict: Exclude<SeenNote['credentials'], 'notTried'>): void
  start(): void
  /** Keeps what is left, and ends. */
  stop(): Promise<void>
}

export interface LiveSeenOptions {
  readonly store: Pick<RolloutStore, 'updateEvidence'>
  readonly clock: Pick<Clock, 'after'>
  /** Notes could not be kept; what they had is lost, so that more has to be seen. Reported once until they can again. */
  readonly onFailure: (partner: string, code: string) => void
}

const EVERY_MS = 10_000
const STOP_MS = 1_000
/** More than a client names on purpose. */
const MAX_CODES = 200
const MAX_CODE_LENGTH = 40

/** A note that nothing is kept of: for an adapter without a store. */
export const noSeen: LiveSeen = {
  wrote: () => undefined,
  unreadable: () => undefined,
  credentials: () => undefined,
  start: () => undefined,
  stop: () => Promise.resolve(),
}

/** Creates the notes of one instance, which are added to those of all instances in the store. */
export function createLiveSeen({ store, clock, onFailure }: LiveSeenOptions): LiveSeen {
  let notes = new Map<string, SeenDraft>()
  const failing = new Set<string>()
  /** Undefined: the write was served by an older stage than others since. */
  const noteOf = (partner: string, revision: number): SeenDraft | undefined => {
    const known = notes.get(partner)
    if (known !== undefined && known.revision >= revision)
      return known.revision === revision ? known : undefined
    const fresh = nothingSeen(revision)
    const note =
      known === undefined ? fresh : { ...fresh, credentials: known.credentials, minutes: known.minutes }
    notes.set(partner, note)
    return note
  }
  const keep = async (): Promise<void> => {
    const taken = notes
    notes = new Map()
    for (const [partner, noted] of taken) {
      try {
        await store.updateEvidence(seenName(partner), (text) =>
          formatSeen(mergedNotes(parseSeen(text), noted)),
        )
        failing.delete(partner)
      } catch (cause) {
        if (!failing.has(partner))
          onFailure(partner, cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL')
        failing.add(partner)
      }
    }
  }
  const keeping = createPeriodicTask({ clock, everyMs: EVERY_MS, stopMs: STOP_MS, act: keep })
  return {
    wrote: ({ partner, revision, side, unit, receivedMs, records }) => {
      const note = noteOf(partner, revision)
      if (note === undefined) return
      const seen = note.sides[side]
      seen.batches += 1
      countText(seen.schools, unit)
      const all = records()
      const codes = new Set<string>()
      for (const { key, code } of all) {
        if (key !== undefined) countText(seen.records, key)
        if (code !== undefined) codes.add(code)
      }
      for (const code of codes) {
        if (code.length > MAX_CODE_LENGTH || seen.codes.size >= MAX_CODES) continue
        const name = codeFingerprint(code)
        if (name !== undefined) seen.codes.add(name)
      }
      const minute = Math.floor(receivedMs / 60_000)
      note.minutes.set(minute, (note.minutes.get(minute) ?? 0) + all.length)
    },
    unreadable: (partner, revision) => {
      const note = noteOf(partner, revision)
      if (note !== undefined) note.unreadable += 1
    },
    credentials: (partner, verdict) => {
      const note = notes.get(partner) ?? noteOf(partner, 0)
      if (note !== undefined) note.credentials = verdict
    },
    start: () => keeping.start(),
    stop: () => keeping.stop(),
  }
}
