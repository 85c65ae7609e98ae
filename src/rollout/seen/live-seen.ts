import { type Clock, createPeriodicTask } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import { type EvidenceEntry, type HashedPair, MAX_WRITTEN } from '../evidence/add-entries.ts'
import { addCounts, codeFingerprint, countName } from '../evidence/count-name.ts'
import type { EvidenceKeeper } from '../evidence/keep-evidence.ts'
import type { EvidenceKey } from '../evidence/periods.ts'
import { checkBits, type EvidenceScope } from '../evidence/read-kept.ts'
import type { Side } from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import { formatNote, mergedNotes, nothingSeen, parseNote, type SeenNote, seenName } from './seen-note.ts'

/** A write that was decoded. */
export interface SeenWrite extends EvidenceScope {
  readonly side: Side
  readonly unit: string
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** A record that cannot be read has no key. */
  readonly records: () => readonly { readonly key: string | undefined; readonly code: string | undefined }[]
}

/** Notes what the advice on the next step of a partner needs to know of its writes. No text of a write is kept. */
export interface LiveSeen {
  wrote(write: SeenWrite): void
  /** V2 was sent a write that cannot be decoded. */
  unreadable(scope: EvidenceScope): void
  /** What V3 says to the credentials that the partner is served with. */
  credentials(partner: string, verdict: Exclude<SeenNote['credentials'], 'notTried'>): void
  start(): void
  /** Keeps what is left, and ends. */
  stop(): Promise<void>
}

interface LiveSeenOptions {
  readonly evidence: Pick<EvidenceKeeper, 'add'>
  readonly store: Pick<RolloutStore, 'updateText'>
  readonly clock: Pick<Clock, 'after'>
  /** Notes could not be kept; what they had is lost, so that more has to be seen. Reported once until they can again. */
  readonly onFailure: (partner: string, code: string) => void
}

const EVERY_MS = 10_000
const STOP_MS = 1_000

/** Nothing is kept: for an adapter without a store. */
export const noSeen: LiveSeen = {
  wrote: () => undefined,
  unreadable: () => undefined,
  credentials: () => undefined,
  start: () => undefined,
  stop: () => Promise.resolve(),
}

/** Creates the notes of one instance, which are added to those of all instances in the store. */
export function createLiveSeen({ evidence, store, clock, onFailure }: LiveSeenOptions): LiveSeen {
  let notes = new Map<string, SeenNote>()
  const failing = new Set<string>()
  const written = createWritten()
  const note = (partner: string, added: Partial<SeenNote>): void => {
    notes.set(partner, mergedNotes(notes.get(partner) ?? nothingSeen, { ...nothingSeen, ...added }))
  }
  const keep = async (): Promise<void> => {
    const taken = notes
    notes = new Map()
    for (const [partner, noted] of taken) {
      try {
        await store.updateText(seenName(partner), (text) => formatNote(mergedNotes(parseNote(text), noted)))
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
    wrote: ({ records, ...write }) => {
      const all = records()
      note(write.partner, { minutes: new Map([[Math.floor(write.receivedMs / 60_000), all.length]]) })
      evidence.add(write, { size: Math.max(1, all.length), toEntry: (key) => written(write, all, key) })
    },
    unreadable: (scope) => {
      const counts = new Map([[countName('unreadable'), 1]])
      evidence.add(scope, { size: 1, toEntry: () => ({ counts, pairs: [] }) })
    },
    credentials: (partner, verdict) => note(partner, { credentials: verdict }),
    start: () => keeping.start(),
    stop: () => keeping.stop(),
  }
}

/** Creates what makes the entry of a write: counts, and each record that this instance has not added before, up to `MAX_WRITTEN` of them. */
function createWritten() {
  /** Of the running period of each partner and side. */
  const added = new Map<string, { readonly period: number; readonly hashes: Set<string> }>()
  return (
    { partner, side, unit }: Pick<SeenWrite, 'partner' | 'side' | 'unit'>,
    records: ReturnType<SeenWrite['records']>,
    key: EvidenceKey,
  ): EvidenceEntry => {
    const counts = new Map([[countName('batch', side), 1]])
    const pairs: HashedPair[] = []
    const name = `${partner} ${side}`
    const known = added.get(name)
    const own = known?.period === key.period ? known : { period: key.period, hashes: new Set<string>() }
    added.set(name, own)
    const school = key.hash('school', unit)
    for (const { key: record, code = '' } of records) {
      const fingerprint = codeFingerprint(code)
      if (fingerprint !== undefined) addCounts(counts, [[countName('written', side, fingerprint), 1]])
      if (record === undefined || own.hashes.size >= MAX_WRITTEN) continue
      const hash = key.hash('record', record)
      const text = Buffer.from(hash).toString('latin1')
      if (!own.hashes.has(text)) pairs.push({ hash, school, checks: 1 << checkBits[side], differs: 0 })
      own.hashes.add(text)
    }
    return { counts, pairs }
  }
}
