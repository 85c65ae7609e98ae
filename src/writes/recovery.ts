import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import type { Slices } from '../http/slices.ts'
import { isDamagedBatch, type ReopenResult, type StoredBatch } from '../journal/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import { isSameCredentials } from '../partners/accepted-credentials.ts'
import type { WriteContext } from './context.ts'
import type { Authorisation, Partner } from '../partners/partner.ts'
import { firstOfAgain, isReadBackFirst } from './replay.ts'
import { deadLetter, deadLetterDamaged, type DeadLetterReason, deadLetterSuperseded } from './dead-letter.ts'
import { markOrphaned } from './orphans.ts'
import { type Plan, planStored } from './plan.ts'
import { runWrites } from './run.ts'
import { openWriteSession } from './write-session.ts'
import { replyContextOf } from './reply-part.ts'
import { decodeStoredRequest, readSender, type StoredRequest } from './stored-request.ts'
import { toTasks } from './tasks.ts'
import { retryDeadlineMs } from './settlement-policy.ts'

/** What finishes writes that no client waits for. */
export interface Recovery {
  /** Looks at once for what is left of instances that are gone, then again and again for that and for what is due. */
  start(): void
  /** Begins nothing more and resolves when what it began has ended. */
  stop(): Promise<void>
}

/** How often the journal is looked through. */
const EVERY_MS = 1_000
const BATCHES_AT_A_TIME = 16
const DUE_AT_A_TIME = 500
/** Looking for lost writes is mostly waiting, so many may do it at a time; the pool and the throttle bound the calls. */
const RECORDS_AT_A_TIME = 256

/** After a failure a batch rests so long, and others have their turn. */
const AFTER_FAILURE_MS = 5_000

/** What a batch cannot be finished without: a client of its partner, or the partner itself in the configuration. */
export type Missing = 'credentials' | 'partner'

/** Why a batch is left alone, and how long: something is missing (by `nowMs`), or it failed just now (by the clock). */
type Rest =
  | {
      readonly missing: Missing
      readonly partner: string
      readonly owner: string
      /** The hash of the credentials that the batch came with. */
      readonly sender: string | undefined
      readonly untilMs: number
    }
  | { readonly missing: undefined; readonly untilMs: number }

/** A batch that is to be finished: these of its records, which are due, or those that were left open. */
interface Work {
  readonly batch: number
  readonly positions: readonly number[] | undefined
}

const credentialsSchema = z.object({ authorization: z.string(), subscriptionKey: z.string() })

/** A batch with what it is finished with, or why it is given up. */
interface Prepared {
  readonly stored: StoredBatch
  readonly authorisation: Authorisation | Exclude<DeadLetterReason, 'unreadable'>
}

/**
 * Creates the background of the journal (product contract 3): it takes over open records of instances that are gone and
 * looks for them in V3 before it posts them; it tries parked records again, and settles unknown ones. A batch goes with the
 * credentials that it came with, where they are kept and as long as the service takes them, else with others of its owner that
 * the service has accepted, or with the very ones that it came with once a client shows them again; never with those of another
 * owner. Without credentials a batch waits for its client, but not longer than other writes are tried again. Where newer marks of
 * the same learner and event wait for it, it delays them only as long as a lost write is looked for. `authorise` says what is missing for one that cannot be asked for; `lookForMs` is that time.
 */
export function createRecovery(
  context: WriteContext,
  authorise: (partner: string, client: V3Credentials | undefined) => Promise<Authorisation> | Missing,
  lookForMs: (partner: string) => number,
): Recovery {
  const { journal, clock, orphans, accepted } = context
  const running = new Map<number, Promise<void>>()
  const resting = new Map<number, Rest>()
  /** Credentials that the service denied, by batch. */
  const denied = new Map<number, readonly V3Credentials[]>()
  /** Due records that could not be finished when they were last seen: they must not hide the others. */
  let dueResting = 0
  /** What is to be done, the first at the end. */
  let queue: Work[] = []
  let stopping = false
  let ticking: Promise<void> | undefined
  let timer: (() => void) | undefined

  /** As `giveUp`; what could not be kept stays for the next time. */
  const end = async (
    stored: StoredBatch,
    { lease, after }: ReopenResult,
    reason: DeadLetterReason,
  ): Promise<void> => {
    if (after.size === 0) return
    const { batch } = stored
    try {
      await deadLetter(context, stored, [...after.keys()], reason, lease)
    } catch (cause) {
      markOrphaned(orphans, batch, after, lease, clock.nowMs())
      throw cause
    }
  }
  const finish = async (
    { stored, authorisation }: Prepared,
    opened: ReopenResult,
    sinceMs?: number,
  ): Promise<void> => {
    const { batch, receivedMs, records } = stored
    if (typeof authorisation === 'string') return end(stored, opened, authorisation)
    const planned = await planAgain(stored, authorisation.partner, context.slicing.open())
    const isReadable = (position: number): boolean => planned?.plan.records[position]?.record !== undefined
    const { lease, after } = opened
    const positions = [...after.keys()].filter(isReadable).sort((one, other) => one - other)
    const unreadable = new Map([...after].filter(([position]) => !isReadable(position)))
    await end(stored, { lease, after: unreadable }, 'unreadable')
    if (planned === undefined || positions.length === 0) return
    const { request, plan } = planned
    const session = openWriteSession(context, authorisation, batch, {
      concurrency: RECORDS_AT_A_TIME,
      sinceMs,
    })
    const { tally } = await runWrites(
      context,
      session,
      {
        batch,
        lease,
        records: plan.records,
        tasks: toTasks(
          plan.records,
          positions,
          after,
          firstOfAgain(records, isReadBackFirst(context)),
          (position, older) =>
            context.predecessors.untilFirst({ batch, position }, older, authorisation.partner.budgetMs),
        ),
        after,
        replyContext: replyContextOf(request.request, context.newId),
        followUp: { outcomesShown: plan.outcomesShown, clientWaits: false, receivedMs },
      },
      () => undefined,
    )
    if (session.denied()) denied.set(batch, [authorisation.client, ...(denied.get(batch) ?? [])].slice(0, 8))
    else denied.delete(batch)
    context.events.recovered({ ...tally, partner: stored.partner, records: positions.length })
  }
  /** What a batch may be finished with: first what the service has not denied for it. */
  const credentialsFor = (
    { batch, owner, credentials }: StoredBatch,
    sender: string | undefined,
  ): V3Credentials | undefined => {
    const shown = sender === undefined ? undefined : accepted.withHash(sender)
    const known = [readCredentials(credentials), accepted.senderOf(batch), shown, ...accepted.of(owner)]
    const candidates = known.filter((one) => one !== undefined)
    const refused = denied.get(batch) ?? []
    return candidates.find((one) => !refused.some((other) => isSameCredentials(one, other))) ?? candidates[0]
  }
  /** Ends what cannot be finished, where newer records have waited for it long enough. */
  const letNewerPass = async (): Promise<void> => {
    const partners = new Map<number, string>()
    for (const [batch, { sinceMs }] of orphans) {
      const rest = resting.get(batch)
      if (rest?.missing === undefined || running.has(batch) || context.active.has(batch)) continue
      if (!isResting(batch)) continue
      if (clock.nowMs() >= sinceMs + lookForMs(rest.partner)) partners.set(batch, rest.partner)
    }
    if (partners.size === 0) return
    const positions = new Map<number, number[]>()
    for (const { batch, position } of await journal.blocking([...partners.keys()])) {
      const own = orphans.get(batch)?.after.has(position) === true
      if (own) positions.set(batch, [...(positions.get(batch) ?? []), position])
    }
    for (const [batch, blocking] of positions) {
      const orphan = orphans.get(batch)
      if (orphan === undefined) continue
      const whose = { batch, partner: partners.get(batch) ?? '', lease: orphan.lease }
      await deadLetterSuperseded(context, whose, blocking).catch((cause: unknown) => {
        // Another instance has it now, and does this there.
        if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_LOST') return
        throw cause
      })
      const left = new Map([...orphan.after].filter(([position]) => !blocking.includes(position)))
      if (left.size === 0) orphans.delete(batch)
      else orphans.set(batch, { ...orphan, after: left })
    }
  }
  /** Hands batches without credentials over to instances that have some for them, since a client showed them there. */
  const handOver = async (): Promise<void> => {
    const held = [...orphans.keys()].filter(
      (batch) =>
        resting.get(batch)?.missing === 'credentials' &&
        isResting(batch) &&
        !running.has(batch) &&
        !context.active.has(batch),
    )
    if (held.length === 0) return
    for (const batch of await journal.handOver(held)) {
      orphans.delete(batch)
      resting.delete(batch)
    }
  }
  /** Loads a batch with the authorisation to finish it; undefined while there is none and it may still come. */
  const prepare = async (batch: number): Promise<Prepared | undefined> => {
    const stored = await journal.load(batch)
    if (stored === undefined) {
      // It was withdrawn: nothing of it was ever sent.
      orphans.delete(batch)
      return undefined
    }
    const { partner, owner } = stored
    const untilMs = retryDeadlineMs(stored.receivedMs)
    const isLate = context.nowMs() >= untilMs
    const sender = readSender(stored.payload)
    const authorised = authorise(partner, credentialsFor(stored, sender))
    if (typeof authorised !== 'string') {
      const authorisation = await (isLate ? authorised.catch(() => 'noToken' as const) : authorised)
      return { stored, authorisation }
    }
    const missing = authorised
    if (isLate) return { stored, authorisation: missing === 'partner' ? 'noPartner' : 'noCredentials' }
    if (resting.get(batch)?.missing !== missing) context.events.recoveryWaits({ partner, missing })
    resting.set(batch, { missing, partner, owner, sender, untilMs })
    return undefined
  }
  const isResting = (batch: number): boolean => {
    const rest = resting.get(batch)
    if (rest === undefined) return false
    if (rest.missing === undefined) return clock.nowMs() < rest.untilMs
    if (context.nowMs() >= rest.untilMs) return false
    if (rest.missing === 'partner') return true
    if (accepted.senderOf(batch) !== undefined || accepted.of(rest.owner).length > 0) return false
    return rest.sender === undefined || accepted.withHash(rest.sender) === undefined
  }
  /** Finishes what is open of a batch; resolves false when it has to wait for its partner. */
  const work = async ({ batch, positions }: Work): Promise<boolean> => {
    const ready = await prepare(batch)
    if (ready === undefined) return false
    if (positions !== undefined) {
      await finish(ready, await journal.reopen(batch, positions, undefined))
      return true
    }
    const orphan = orphans.get(batch)
    if (orphan === undefined) return true
    // What cannot be finished now comes back.
    orphans.delete(batch)
    await finish(ready, openOf(ready.stored, orphan), orphan.sinceMs)
    return true
  }
  /** As `work`; records of a batch that cannot be read are ended, since no later attempt can read it either. */
  const workOrEnd = async (next: Work): Promise<boolean> => {
    try {
      return await work(next)
    } catch (cause) {
      if (!isDamagedBatch(cause)) throw cause
      const { batch, positions } = next
      const opened =
        positions === undefined
          ? orphans.get(batch)
          : await journal.reopen(batch, positions, undefined, 'evenDamaged')
      // What the journal cannot say of any record stays as it is.
      if (opened?.after.size === 0) throw cause
      if (opened !== undefined) await deadLetterDamaged(context, batch, opened)
      orphans.delete(batch)
      context.events.recoveryFailed({ code: 'ADP_JOURNAL_DAMAGED' })
      return true
    }
  }
  const run = (next: Work): void => {
    const { batch } = next
    const job = workOrEnd(next)
      .then(
        (isDone) => {
          if (isDone) resting.delete(batch)
        },
        (cause: unknown) => {
          const code = cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL'
          context.events.recoveryFailed({ code })
          resting.set(batch, { missing: undefined, untilMs: clock.nowMs() + AFTER_FAILURE_MS })
        },
      )
      .finally(() => {
        running.delete(batch)
        fill()
      })
    running.set(batch, job)
  }
  /** Begins what is to be done, as far as it may now. */
  const fill = (): void => {
    while (!stopping && running.size < BATCHES_AT_A_TIME) {
      const next = queue.pop()
      if (next === undefined) return
      if (!running.has(next.batch)) run(next)
    }
  }
  const takeOver = async (): Promise<void> => {
    const taken = await journal.takeOver()
    const isAttended = (batch: number): boolean =>
      running.has(batch) || orphans.has(batch) || context.active.has(batch)
    const abandoned = await journal.findAbandoned(isAttended)
    const now = journal.lease()
    if (now !== undefined) {
      context.active.keepOnly(now)
      // What came under a lease that was lost is taken over anew, here or elsewhere.
      for (const [batch, { lease }] of orphans) if (lease !== now) orphans.delete(batch)
    }
    for (const { batch, after, lease } of [...taken, ...abandoned])
      markOrphaned(orphans, batch, after, lease, clock.nowMs())
  }
  const tick = async (): Promise<void> => {
    await takeOver()
    await handOver()
    await letNewerPass()
    const due = await journal.due(context.nowMs(), DUE_AT_A_TIME + dueResting)
    const mayRun = (batch: number): boolean => !running.has(batch) && !isResting(batch)
    dueResting = due.reduce((sum, { batch, positions }) => sum + (isResting(batch) ? positions.length : 0), 0)
    const left = [...orphans.keys()]
      .filter((batch) => !context.active.has(batch))
      .map((batch): Work => ({ batch, positions: undefined }))
    queue = [...left, ...due].filter(({ batch }) => mayRun(batch)).reverse()
    fill()
  }
  const start = (): void => {
    timer = undefined
    ticking = tick()
      .catch((cause: unknown) => {
        context.events.recoveryFailed({ code: cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL' })
      })
      .finally(() => {
        ticking = undefined
        if (!stopping) timer = clock.after(EVERY_MS, start)
      })
  }
  return {
    start,
    stop: async () => {
      stopping = true
      timer?.()
      await ticking
      await Promise.all(running.values())
    },
  }
}

/** Undefined for a request that this version cannot read: so it will be the next time. */
async function planAgain(
  { payload, receivedMs }: StoredBatch,
  partner: Partner,
  slices: Slices,
): Promise<{ readonly request: StoredRequest; readonly plan: Plan } | undefined> {
  if (payload === undefined) return undefined
  try {
    const request = decodeStoredRequest(payload)
    return { request, plan: await planStored(request, partner, receivedMs, slices) }
  } catch (cause) {
    if (cause instanceof AdapterError) return undefined
    throw cause
  }
}

/** Those of the records that are open still, each with the older ones that it waits for. */
function openOf({ records }: StoredBatch, { lease, after }: ReopenResult): ReopenResult {
  return { lease, after: new Map([...after].filter(([position]) => records[position]?.state === 'open')) }
}

function readCredentials(text: string | undefined): V3Credentials | undefined {
  if (text === undefined) return undefined
  const result = credentialsSchema.safeParse(JSON.parse(text))
  return result.success ? result.data : undefined
}
