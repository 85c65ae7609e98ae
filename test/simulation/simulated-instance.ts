import { toPartners } from '../../src/app/partners.ts'
import { parseConfig } from '../../src/config/index.ts'
import { AdapterError, errorRules } from '../../src/errors.ts'
import type { Slicing } from '../../src/http/slices.ts'
import type { DurableJournal } from '../../src/journal/index.ts'
import { openJournalOn } from '../../src/journal/sql-journal.ts'
import type { Store } from '../../src/journal/store.ts'
import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import {
  authoriseClient,
  authoriseWithout,
  createAcceptedCredentials,
  createTokenVerdicts,
  type Partner,
} from '../../src/partners/index.ts'
import { identify } from '../../src/partners/owner.ts'
import type { Client } from '../../src/partners/partner.ts'
import { createRateLimits, type OpenConnection } from '../../src/upstream/index.ts'
import { noBatchLimits, type PartReply } from '../../src/v2/index.ts'
import { createV3Client, createV3Reader } from '../../src/v3/index.ts'
import {
  answerWrites,
  createActiveRecords,
  createEchoLearning,
  createPredecessorWatch,
  createRecovery,
  planWrites,
  type Reply,
  toWriteRequest,
  type WriteContext,
} from '../../src/writes/index.ts'
import { guid } from './simulated-service.ts'
import type { Actor, SteppedClock, World } from './world.ts'

/** A request as a client sends it. */
export interface BatchRequest {
  readonly authorization: string
  readonly contentType: string
  readonly body: Buffer
}

/** What comes back to a client, in this order: parts, then the end, or a whole answer, or a broken connection. */
export interface ReplyListener {
  part(position: number, part: PartReply): void
  end(): void
  whole(status: number, code: string, cause?: unknown): void
  broken(): void
}

/** How long things take in a history. */
export interface Timing {
  readonly leaseMs: number
  readonly budgetMs: number
  readonly readBackAfterMs: readonly number[]
  readonly headersMs: number
  readonly callsPerSecond: number | undefined
}

export const PARTNER = 'acme'
const SUBSCRIPTION_KEY = 'key'
const silent = createLogger('silent')
const partners = new Map<string, Partner>()

/** The partner of a history; histories with the same settings share one. */
function partnerOf({ budgetMs, readBackAfterMs, callsPerSecond }: Timing, isMinimal: boolean): Partner {
  const settings = {
    budgetMs,
    readBackAfterMs,
    bodyProfile: isMinimal ? 'minimal' : 'full',
    writeMode: 'single',
  }
  const name = JSON.stringify({ ...settings, callsPerSecond })
  const known = partners.get(name)
  if (known !== undefined) return known
  const config = parseConfig({
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:9' } },
    partners: [
      {
        id: PARTNER,
        match: { any: true },
        clients: 'open',
        v3: { ...settings, ...(callsPerSecond === undefined ? {} : { callsPerSecond }) },
      },
    ],
  })
  const [partner] = toPartners(config)
  if (partner === undefined) throw new Error('no partner')
  partners.set(name, partner)
  return partner
}

export interface InstanceOptions {
  readonly world: World
  readonly actor: Actor
  readonly clock: SteppedClock
  readonly store: Store
  readonly open: OpenConnection
  readonly timing: Timing
  readonly isMinimal: boolean
  /** Called before a batch is begun, and with its number once it is. */
  readonly onBegin: (content: Uint8Array, batch: number | undefined) => void
}

/** A running adapter without its HTTP server: the journal, the engine and the client of V3 as the program composes them. */
export class SimulatedInstance {
  readonly actor: Actor
  readonly clock: SteppedClock
  readonly journal: DurableJournal
  private readonly context: WriteContext
  private readonly recovery: ReturnType<typeof createRecovery>
  private readonly partner: Partner
  private readonly rateLimits: ReturnType<typeof createRateLimits>
  private requests = 0

  private constructor(options: InstanceOptions, journal: DurableJournal) {
    const { world, actor, clock, open, timing, isMinimal } = options
    this.actor = actor
    this.clock = clock
    this.journal = journal
    this.partner = partnerOf(timing, isMinimal)
    const ids = world.random(`ids of ${actor.name}`)
    const newId = (): string => guid(5, ids.below(1_000_000_000))
    const slicing: Slicing = {
      later: (act) => void world.immediately(act),
      open: () => ({
        spend: () => false,
        next: () => new Promise((resolve) => void world.immediately(() => resolve(undefined))),
      }),
    }
    const upstream = {
      baseUrl: new URL('http://service/'),
      connections: 4,
      timeouts: { connectMs: 500, headersMs: timing.headersMs },
      nowMs: () => clock.wallMs(),
      clock,
      later: slicing.later,
      open,
    }
    this.rateLimits = createRateLimits(clock, () => undefined)
    this.context = {
      v3: createV3Client(upstream),
      reader: createV3Reader(upstream),
      upstream: upstream.baseUrl.href,
      journal,
      predecessors: createPredecessorWatch(journal, clock),
      accepted: createAcceptedCredentials(),
      verdicts: createTokenVerdicts(() => clock.wallMs()),
      orphans: new Map(),
      echoes: createEchoLearning(() => clock.wallMs()),
      onVisible: () => undefined,
      active: createActiveRecords(),
      slicing,
      events: createEvents(silent),
      clock,
      nowMs: () => clock.wallMs(),
      newId,
    }
    const readBackMs = timing.readBackAfterMs.reduce((sum, ms) => sum + ms, 0)
    this.recovery = createRecovery(
      this.context,
      (_id, shown) => authoriseWithout(this.partner, this.rateLimits, shown),
      () => readBackMs,
    )
  }

  /** Opens the journal and starts recovery, as the program does. */
  static async start(options: InstanceOptions): Promise<SimulatedInstance> {
    const { store, clock, timing, onBegin } = options
    const opened = await openJournalOn(store, {
      leaseMs: timing.leaseMs,
      timeoutMs: 2_000,
      settleTimeoutMs: 10_000,
      clock,
    })
    const journal: DurableJournal = {
      ...opened,
      begin: async (batch) => {
        onBegin(batch.content, undefined)
        const begun = await opened.begin(batch)
        onBegin(batch.content, begun.batch)
        return begun
      },
    }
    const instance = new SimulatedInstance(options, journal)
    instance.recovery.start()
    return instance
  }

  /** Serves one batch as the handler of writes does. */
  async serve({ authorization, contentType, body }: BatchRequest, listener: ReplyListener): Promise<void> {
    const { context, partner, clock } = this
    const slices = context.slicing.open()
    const receivedMs = clock.wallMs()
    this.requests += 1
    const sent = { hasLeft: false }
    try {
      const shown = { authorization, subscriptionKey: SUBSCRIPTION_KEY }
      const identity = identify(partner, shown)
      const client: Client = { partner, client: shown, owner: identity.owner, identity }
      const authorisation = await authoriseClient(client, this.rateLimits)
      const request = toWriteRequest(
        'batch',
        partner,
        { 'content-type': contentType },
        {
          root: 'http://adapter/V2/Attendance/',
          records: 'http://adapter/V2/Attendance/AttendanceRecords',
        },
      )
      const plan = await planWrites(request, body, partner, receivedMs, noBatchLimits, slices)
      const answered = await answerWrites(
        context,
        authorisation,
        { request, body, receivedMs, plan, slices },
        () => {
          const parts = new Map<number, PartReply>()
          let next = 0
          const write = (): void => {
            for (let part = parts.get(next); part !== undefined; part = parts.get(next)) {
              listener.part(next, part)
              next += 1
            }
          }
          const reply: Reply = {
            begin: () => {
              sent.hasLeft = true
              write()
            },
            hasLeft: () => sent.hasLeft && next > 0,
            settle: (position, part) => {
              if (!parts.has(position)) parts.set(position, part)
              if (sent.hasLeft) write()
            },
            end: () => {
              sent.hasLeft = true
              write()
              if (next < plan.records.length) listener.whole(500, `unanswered ${next}`)
              listener.end()
              return Promise.resolve()
            },
          }
          return reply
        },
      )
      this.context.journal.answered(answered.batch)
    } catch (cause) {
      if (!(cause instanceof AdapterError)) throw cause
      if (sent.hasLeft) listener.broken()
      else listener.whole(errorRules[cause.code].status, cause.code, cause)
    } finally {
      this.requests -= 1
    }
  }

  get isIdle(): boolean {
    return this.requests === 0
  }

  async close(): Promise<void> {
    await this.recovery.stop()
    await this.context.v3.close()
    await this.context.reader.close()
    await this.journal.close()
  }
}
