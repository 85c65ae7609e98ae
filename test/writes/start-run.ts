import { createNoJournal, type Journal, type Settled } from '../../src/journal/index.ts'
import type { BatchTally } from '../../src/observability/events.ts'
import type { Authorisation, Partner } from '../../src/partners/partner.ts'
import type { PostOutcome, ReadOutcome, V3Writes } from '../../src/v3/index.ts'
import type { Plan, PlannedRecord } from '../../src/writes/plan.ts'
import { type Run, runRecords } from '../../src/writes/run.ts'
import { openWriteSession } from '../../src/writes/write-session.ts'
import { partner } from '../partners/partner.ts'
import { guid } from '../support/batch-request.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { plannedRecord } from './planned-record.ts'
import { createWriteContext } from './write-context.ts'

export const authorisation = (own: Partial<Partner> = {}): Authorisation => ({
  partner: { ...partner('acme', { any: true }), budgetMs: 1_000, ...own },
  client: { authorization: 'bearer t', subscriptionKey: 'k' },
  credentials: { authorization: 'bearer t', subscriptionKey: 'k' },
  owner: 'owner',
  identity: {
    owner: 'owner',
    credentialsHash: 'hash',
    isNamed: true,
    school: undefined,
    expiresMs: undefined,
  },
  rateLimit: undefined,
  renew: undefined,
})

export const planOf = (records: readonly PlannedRecord[], outcomesShown = true): Plan => ({
  records,
  markedMs: Date.parse(records[0]?.record?.RecordedOn ?? '2026-06-10T10:00:00Z'),
  unmappedFields: 0,
  convertedFields: 0,
  changesets: 1,
  outcomesShown,
  ids: undefined,
})

export interface StartedRun {
  /** Returns V3's outcome for the record of learner `n`. By default V3 accepts every record. */
  readonly post?: (n: number, body: string) => PostOutcome | Promise<PostOutcome>
  readonly reads?: readonly ReadOutcome[]
  readonly records?: readonly PlannedRecord[]
  readonly run?: Partial<Run>
  readonly journal?: Partial<Journal>
  readonly partner?: Partial<Partner>
  /** True if the status line of the reply was sent (false by default). */
  readonly isStatusSent?: boolean
}

export const acceptedReply: PostOutcome = { kind: 'accepted', reply: { ExternalID: guid(5) } }

/** Runs records of batch 7 against a scripted V3, with a clock that only the test advances. */
export function startRun(own: StartedRun) {
  const { post = () => acceptedReply, records = [1, 2, 3].map((n) => plannedRecord(n)), reads = [] } = own
  const clock = createManualClock()
  const posted: number[] = []
  const commits: number[][] = []
  const settled: Settled[] = []
  const parts: [position: number, status: number][] = []
  const settle = own.journal?.settle ?? (() => Promise.resolve())
  const journal: Journal = {
    ...createNoJournal(),
    forget: () => Promise.resolve(),
    ...own.journal,
    settle: async (batch, outcomes, lease) => {
      commits.push(outcomes.map(({ position }) => position))
      await settle(batch, outcomes, lease)
      settled.push(...outcomes)
    },
  }
  const writes: V3Writes = {
    post: async (body) => {
      const n = Number(/"Attendee":\{"ExternalID":"[0-9a-f-]{24}(\d{12})"/.exec(body)?.[1])
      posted.push(n)
      return post(n, body)
    },
    atATime: undefined,
    withdraw: () => undefined,
    leftMs: () => 1_000,
    queuedMs: () => 0,
  }
  let read = 0
  const context = createWriteContext({
    journal,
    clock,
    nowMs: () => clock.nowMs(),
    v3: { openWrites: () => writes, close: () => Promise.resolve() },
    reader: {
      get: () => Promise.resolve(reads[Math.min(read++, reads.length - 1)] ?? { kind: 'overdue' }),
      held: () => 0,
      close: () => Promise.resolve(),
    },
  })
  const session = openWriteSession(context, authorisation(own.partner), 7)
  const reply = {
    setPart: (position: number, { status }: { readonly status: number }) =>
      void parts.push([position, status]),
    begin: () => undefined,
    isStatusSent: () => own.isStatusSent === true,
    end: () => Promise.resolve(),
  }
  const whole = runRecords(
    context,
    session,
    {
      batch: 7,
      lease: 1,
      receivedMs: 0,
      plan: planOf(records),
      positions: records.keys(),
      after: new Map(),
      mayBeApplied: () => false,
      clientWaits: true,
      replyContext: { context: '', newId: () => guid(1), dataEnvelope: false },
      ...own.run,
    },
    reply,
  )
  const state: { tally?: BatchTally; error?: unknown; isOver: boolean } = { isOver: false }
  void whole.then(
    (tally) => Object.assign(state, { tally, isOver: true }),
    (error: unknown) => Object.assign(state, { error, isOver: true }),
  )
  /** Advances the clock until the run has ended. */
  const end = async () => {
    for (let step = 0; !state.isOver && step < 2_000; step += 1) await turn()
    if (!state.isOver) throw new Error('the run never ends')
    return { ...state, posted, parts, settled }
  }
  const turn = async (): Promise<void> => {
    await clock.pass(10)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { context, clock, posted, commits, settled, parts, state, turn, end }
}
