import { AdapterError } from '../errors.ts'
import type { DueRecord } from '../journal/index.ts'
import { markOrphaned } from './active-records.ts'
import type { WriteContext } from './context.ts'
import {
  type AuthoriseStored,
  createFinisher,
  deadLetterSuperseded,
  type Waiting,
  type Work,
} from './finish-batch.ts'

/** How often the journal is searched. */
const EVERY_MS = 1_000
const BATCHES_AT_A_TIME = 16
const DUE_AT_A_TIME = 500

/**
 * Creates the scheduler of recovery (product contract 3): it chooses the batches that are to be finished, orphaned ones first,
 * and keeps sixteen of them under way; `createFinisher` finishes one. `authorise` names what is missing for a batch that cannot
 * go to V3; `readBackMs` is the time for which a lost write of a partner is read back.
 */
export function createRecovery(
  context: WriteContext,
  authorise: AuthoriseStored,
  readBackMs: (partner: string) => number,
) {
  const { journal, clock, orphans, active, events } = context
  const resting = createResting(context)
  const finishBatch = createFinisher(context, authorise, readBackMs)
  const running = new Map<number, Promise<void>>()
  /** Up to here all that is due rests: it is not read again before the end was reached. Undefined: from the start. */
  let passed: DueRecord | undefined
  /** What has become due since then must not wait for that. */
  let newest: DueRecord = { retryMs: context.nowMs(), batch: 0, position: 0 }
  /** Batches to finish, the first at the end. */
  let queue: Work[] = []
  let stopping = false
  let ticking: Promise<void> | undefined
  let timer: (() => void) | undefined

  const failed = (cause: unknown): void =>
    events.recoveryFailed({ code: cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL' })
  const isBusy = (batch: number): boolean => running.has(batch) || active.has(batch)

  const run = (next: Work): void => {
    const { batch } = next
    resting.begin(batch)
    const job = finishBatch(next)
      .then(
        (end) => {
          if (end === 'done') resting.delete(batch)
          else if (end !== 'early' && resting.wait(next, end))
            events.recoveryWaits({ partner: end.partner, missing: end.missing })
        },
        (cause: unknown) => {
          failed(cause)
          resting.failed(next)
        },
      )
      .finally(() => {
        running.delete(batch)
        fill()
      })
    running.set(batch, job)
  }
  const fill = (): void => {
    while (!stopping && running.size < BATCHES_AT_A_TIME) {
      const next = queue.pop()
      if (next === undefined) return
      if (!running.has(next.batch)) run(next)
    }
  }
  const takeOver = async (): Promise<void> => {
    const taken = await journal.takeOver()
    const abandoned = await journal.findAbandoned((batch) => isBusy(batch) || orphans.has(batch))
    const now = journal.lease()
    if (now !== undefined) {
      active.keepOnly(now)
      // Batches of a lost lease are taken over anew, by this instance or another.
      for (const [batch, { lease }] of orphans) if (lease !== now) orphans.delete(batch)
    }
    for (const { batch, after, lease } of [...taken, ...abandoned])
      markOrphaned(orphans, batch, after, lease, clock.nowMs())
  }
  const tick = async (): Promise<void> => {
    await takeOver()
    await handOver(context, resting, isBusy)
    await letNewerPass(context, resting, isBusy, readBackMs)
    const goingOn = resting.end(DUE_AT_A_TIME)
    const due = await readDue()
    const left = [...orphans.keys()]
      .filter((batch) => !active.has(batch))
      .map((batch): Work => ({ batch, positions: undefined }))
    const works = new Map<number, Work>()
    for (const work of [...left, ...goingOn, ...due]) {
      const { batch } = work
      if (!works.has(batch) && !running.has(batch) && !resting.has(batch)) works.set(batch, work)
    }
    queue = [...works.values()].reverse()
    fill()
  }
  /** Reads as much at a time, however much rests. */
  const readDue = async (): Promise<readonly Work[]> => {
    const nowMs = context.nowMs()
    const older = await journal.due(nowMs, DUE_AT_A_TIME, passed)
    const fresh = await journal.due(nowMs, DUE_AT_A_TIME, newest)
    for (const one of older) resting.add(one)
    for (const one of fresh) resting.add(one)
    const isEnd = older.length < DUE_AT_A_TIME && older.every(({ batch }) => resting.has(batch))
    passed = isEnd ? undefined : (lastResting(older) ?? passed)
    newest = lastResting(fresh.filter(({ retryMs }) => retryMs <= nowMs)) ?? newest
    const byBatch = Map.groupBy([...older, ...fresh], ({ batch }) => batch)
    return [...byBatch].map(([batch, own]) => ({
      batch,
      positions: [...new Set(own.map(({ position }) => position))],
    }))
  }
  /** The last of those in front that rest. */
  const lastResting = (due: readonly DueRecord[]): DueRecord | undefined => {
    const end = due.findIndex(({ batch }) => !resting.has(batch))
    return due.slice(0, end === -1 ? due.length : end).at(-1)
  }
  const start = (): void => {
    timer = undefined
    ticking = tick()
      .catch(failed)
      .finally(() => {
        ticking = undefined
        if (!stopping) timer = clock.after(EVERY_MS, start)
      })
  }
  return {
    /** Takes over the orphans of instances that are gone, now and every second, and retries due records. */
    start,
    /** Retries batches that wait for credentials or for their partner: another configuration may have them. */
    retryWaiting: (): void => resting.endWaits(),
    /** Starts no more batches, and resolves when those under way have ended. */
    stop: async (): Promise<void> => {
      stopping = true
      timer?.()
      await ticking
      await Promise.all(running.values())
    },
  }
}

/** How long a batch rests after a failure. */
const AFTER_FAILURE_MS = 5_000

type Resting = ReturnType<typeof createResting>

/** A batch that is left alone for now. */
interface Rest {
  readonly until: Waiting | { readonly retryMs: number }
  /** Its records that are due: they go on with it, without being searched for. */
  readonly positions: Set<number>
}

/** Batches that wait for one thing: what ends the wait of one ends those of all. */
interface Line {
  readonly waiting: Waiting
  readonly batches: Set<number>
}

/** Creates the batches that recovery leaves alone for now: something is missing, or their last run has just failed. */
function createResting({ clock, accepted, nowMs }: WriteContext) {
  const rests = new Map<number, Rest>()
  const lines = new Map<string, Line>()
  /** Batches whose last run has failed, the first to go on in front. */
  const failed = new Set<number>()
  /** Due records of batches that rest no longer. */
  const goingOn = new Map<number, Set<number>>()

  const isMissing = ({ missing, owner, sender }: Waiting): boolean => {
    if (missing === 'partner') return true
    return (
      accepted.of(owner).length === 0 && (sender === undefined || accepted.withHash(sender) === undefined)
    )
  }
  /** The wait of the batch, while the thing is still missing; undefined: it does not wait. */
  const waiting = (batch: number): Waiting | undefined => {
    const { until } = rests.get(batch) ?? {}
    if (until === undefined || !('missing' in until) || nowMs() >= until.untilMs) return undefined
    const isSent = until.missing === 'credentials' && accepted.senderOf(batch) !== undefined
    return !isSent && isMissing(until) ? until : undefined
  }
  const has = (batch: number): boolean => {
    const { until } = rests.get(batch) ?? {}
    if (until === undefined || 'missing' in until) return waiting(batch) !== undefined
    return clock.nowMs() < until.retryMs
  }
  /** Ends the rest of a batch; gives its records that are due. */
  const remove = (batch: number): Set<number> | undefined => {
    const rest = rests.get(batch)
    rests.delete(batch)
    failed.delete(batch)
    if (rest !== undefined && 'missing' in rest.until) {
      const name = lineOf(rest.until)
      const others = lines.get(name)?.batches
      others?.delete(batch)
      if (others?.size === 0) lines.delete(name)
    }
    return rest?.positions
  }
  const goOn = (batch: number): void => {
    const positions = remove(batch)
    if (positions !== undefined && positions.size > 0) goingOn.set(batch, positions)
  }
  const rest = ({ batch, positions = [] }: Work, until: Rest['until']): void => {
    const known = remove(batch)
    rests.set(batch, { until, positions: new Set([...(known ?? []), ...positions]) })
  }
  return {
    /** Lets a batch wait for a thing; true: it is the first one to. */
    wait: (work: Work, until: Waiting): boolean => {
      rest(work, until)
      const line = lines.get(lineOf(until))
      line?.batches.add(work.batch)
      if (line === undefined) lines.set(lineOf(until), { waiting: until, batches: new Set([work.batch]) })
      return line === undefined
    },
    /** Lets a batch rest after a failure, so that others have their turn. */
    failed: (work: Work): void => {
      rest(work, { retryMs: clock.nowMs() + AFTER_FAILURE_MS })
      failed.add(work.batch)
    },
    /** A record that is due: where its batch rests, it goes on with it. */
    add: ({ batch, position }: DueRecord): void => void rests.get(batch)?.positions.add(position),
    has,
    waiting,
    delete: (batch: number): void => void remove(batch),
    /** Ends the rests that are over; gives some of the due batches that go on, until `begin`. */
    end: (limit: number): readonly Work[] => {
      for (const { waiting: until, batches } of lines.values())
        if (!isMissing(until)) for (const batch of batches) goOn(batch)
      for (const batch of failed) {
        if (has(batch)) break
        goOn(batch)
      }
      const works: Work[] = []
      for (const [batch, positions] of goingOn) {
        if (works.length >= limit) break
        works.push({ batch, positions: [...positions] })
      }
      return works
    },
    begin: (batch: number): void => void goingOn.delete(batch),
    /** Ends all waits: the missing part may be available. */
    endWaits: (): void => {
      for (const { batches } of lines.values()) for (const batch of batches) goOn(batch)
    },
  }
}

const lineOf = ({ missing, partner, owner, sender = '' }: Waiting): string =>
  missing === 'partner' ? `${missing} ${partner}` : `${missing} ${owner} ${sender}`

/** Hands orphans that lack credentials over to instances that asked for them, because a client showed credentials there. */
async function handOver(
  { journal, orphans }: WriteContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
): Promise<void> {
  const held = [...orphans.keys()].filter(
    (batch) => resting.waiting(batch)?.missing === 'credentials' && !isBusy(batch),
  )
  if (held.length === 0) return
  for (const batch of await journal.handOver(held)) {
    orphans.delete(batch)
    resting.delete(batch)
  }
}

/**
 * Ends orphans that lack something and that newer records of their keys have waited for as long as a lost write is read back
 * (`readBackMs`, by the partner's id), so that no orphan delays a newer mark for longer. `isBusy`: a run has the batch.
 */
async function letNewerPass(
  context: WriteContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
  readBackMs: (partner: string) => number,
): Promise<void> {
  const { journal, orphans, clock } = context
  const partners = new Map<number, string>()
  for (const [batch, { sinceMs }] of orphans) {
    const waiting = resting.waiting(batch)
    if (waiting === undefined || isBusy(batch)) continue
    if (clock.nowMs() >= sinceMs + readBackMs(waiting.partner)) partners.set(batch, waiting.partner)
  }
  if (partners.size === 0) return
  const blocked = (await journal.blocking([...partners.keys()])).filter(({ batch, position }) =>
    orphans.get(batch)?.after.has(position),
  )
  for (const [batch, refs] of Map.groupBy(blocked, (ref) => ref.batch)) {
    const orphan = orphans.get(batch)
    if (orphan === undefined) continue
    const ended = new Set(refs.map(({ position }) => position))
    const whose = { batch, partner: partners.get(batch), lease: orphan.lease }
    await deadLetterSuperseded(context, whose, [...ended]).catch((cause: unknown) => {
      // Another instance has it now, and does this there.
      if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_LOST') return
      throw cause
    })
    const left = new Map([...orphan.after].filter(([position]) => !ended.has(position)))
    if (left.size === 0) orphans.delete(batch)
    else orphans.set(batch, { ...orphan, after: left })
  }
}
