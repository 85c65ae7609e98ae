import { toPartners } from '../../src/app/partners.ts'
import { parseConfig } from '../../src/config/index.ts'
import { AdapterError, errorRules } from '../../src/errors.ts'
import { createFailureScope } from '../../src/http/failure-scope.ts'
import type { Slicing } from '../../src/http/slices.ts'
import type { BeginResult, DurableJournal } from '../../src/journal/index.ts'
import type { Processes } from '../../src/journal/process-identity.ts'
import { openJournalOn } from '../../src/journal/sql-journal.ts'
import type { Store } from '../../src/journal/store.ts'
import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { createAcceptedCredentials, createTokenVerdicts } from '../../src/partners/credentials.ts'
import { identify } from '../../src/partners/owner.ts'
import { longestReadBackMs } from '../../src/partners/registry.ts'
import { authoriseClient, authoriseWithout, type Client, type Partner } from '../../src/partners/partner.ts'
import { expectCurrent } from '../../src/proxy/exchange.ts'
import type { StageEntry } from '../../src/rollout/decide.ts'
import type { KeptStages } from '../../src/rollout/live/known-stages.ts'
import { createStoredStages, type StoredStages } from '../../src/rollout/live/stored-stages.ts'
import { createRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { createRateLimits, type OpenConnection } from '../../src/upstream/index.ts'
import { type BatchEncoder, createBatchEncoder, decodeBatchReply, noBatchLimits, type PartReply } from '../../src/v2/index.ts' // prettier-ignore
import { createV3Client, createV3Reader } from '../../src/v3/index.ts'
import { createActiveRecords } from '../../src/writes/active-records.ts'
import { answerWrites } from '../../src/writes/answer.ts'
import { createEchoLearning, type WriteContext } from '../../src/writes/context.ts'
import { type Plan, planWrites } from '../../src/writes/plan.ts'
import { createPredecessorWatch } from '../../src/writes/predecessors.ts'
import { createRecovery } from '../../src/writes/recovery.ts'
import type { Reply } from '../../src/writes/reply.ts'
import { toWriteRequest } from '../../src/writes/stored-request.ts'
import type { StageHabits } from './operator.ts'
import { createSimulatedRelay, deliverStoredReply, V2_ORIGIN } from './simulated-relay.ts'
import { guid } from './simulated-service.ts'
import type { Actor, SteppedClock, World } from './world.ts'

export interface BatchRequest {
  readonly kind: 'batch' | 'record'
  readonly authorization: string
  readonly unit: string
  readonly contentType: string
  readonly body: Buffer
  /** The number of the request among the requests of all clients. */
  readonly send: number
}

/** The callbacks of a request. Its client gets either parts and then the end, or a whole reply, or a broken connection. */
export interface ReplyListener {
  /** Called when the adapter has chosen the side, V2 or V3, that serves the request. */
  onStageEntry(entry: StageEntry): void
  /** Called with `undefined` before the journal begins the batch, and again with the result. */
  onBegin(content: Uint8Array, result: BeginResult | undefined): void
  /** Called when the adapter sends the batch to V2 although the journal could not record it. */
  onUnrecorded(): void
  onPart(position: number, part: PartReply): void
  onEnd(): void
  onWholeReply(status: number, code: string, cause?: unknown): void
  onBroken(): void
}

export interface Timing {
  readonly leaseMs: number
  readonly budgetMs: number
  readonly readBackAfterMs: readonly number[]
  readonly headersMs: number
  readonly connectionsToV2: number
  readonly callsPerSecond: number | undefined
}

/** How records are posted to V3: one by one, or in batches of this format. */
type Writes = 'single' | 'json' | 'multipart'

export const PARTNER = 'acme'
const SUBSCRIPTION_KEY = 'key'
const events = createEvents(createLogger('silent'))
const partners = new Map<string, Partner>()

/** Returns the partner of a history. Histories with the same settings share one object. */
function partnerOf(
  { budgetMs, readBackAfterMs, callsPerSecond }: Timing,
  isMinimal: boolean,
  writes: Writes,
  begin: StageHabits['fileStage'] | undefined,
): Partner {
  const settings = {
    budgetMs,
    readBackAfterMs,
    batchRecordMs: 600,
    bodyProfile: isMinimal ? 'minimal' : 'full',
    ...(writes === 'single' ? { writeMode: 'single' } : { writeMode: 'batch', batchFormat: writes }),
  }
  const name = JSON.stringify({ ...settings, callsPerSecond, begin })
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
  const [found] = toPartners(config)
  if (found === undefined) throw new Error('no partner')
  const partner = begin === undefined ? found : { ...found, v2: new URL(V2_ORIGIN), fileStage: begin }
  partners.set(name, partner)
  return partner
}

export interface InstanceOptions {
  readonly world: World
  readonly actor: Actor
  readonly clock: SteppedClock
  readonly store: Store
  readonly processes: Processes
  readonly openV3: OpenConnection
  readonly timing: Timing
  readonly isMinimal: boolean
  readonly writes: Writes
  /** True if the journal stores credentials, encrypted. */
  readonly keepsCredentials: boolean
  /** Called when the instance finds its journal damaged. */
  readonly onDamage: () => void
  readonly v2: V2Options | undefined
}

/** The additional options of an instance whose partner is served by both V2 and V3. */
interface V2Options extends StageHabits {
  readonly openV2: OpenConnection
  readonly stageFile: KeptStages
}

/** A running adapter without its HTTP server. Its journal, write engine and V3 client are composed as in the program. */
export class SimulatedInstance {
  readonly actor: Actor
  readonly clock: SteppedClock
  readonly journal: DurableJournal
  readonly rollout: ReturnType<typeof createRolloutStore>
  private readonly stages: StoredStages | undefined
  private readonly relay: ReturnType<typeof createSimulatedRelay> | undefined
  private readonly context: WriteContext
  private readonly recovery: ReturnType<typeof createRecovery>
  private readonly partner: Partner
  private readonly rateLimits: ReturnType<typeof createRateLimits>
  private readonly onDamage: () => void
  private requests = 0

  private constructor(options: InstanceOptions, journal: DurableJournal) {
    const { world, actor, clock, openV3: open, timing, isMinimal, writes, v2: staged } = options
    this.actor = actor
    this.clock = clock
    this.journal = journal
    this.onDamage = options.onDamage
    this.partner = partnerOf(timing, isMinimal, writes, staged?.fileStage)
    this.rollout = createRolloutStore(journal.database)
    const ids = world.random(`ids of ${actor.name}`)
    const newId = (): string => guid(5, ids.below(1_000_000_000))
    const slicing: Slicing = {
      later: (act) => void world.afterEvent(act),
      open: () => ({
        spend: () => false,
        next: () => new Promise((resolve) => void world.afterEvent(() => resolve(undefined))),
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
      failures: createFailureScope(),
      events,
      clock,
      nowMs: () => clock.wallMs(),
      newId,
    }
    this.recovery = createRecovery(
      this.context,
      (_id, shown) => authoriseWithout(this.partner, this.rateLimits, shown),
      (...sent) => longestReadBackMs({ of: () => this.partner, partners: () => [this.partner] }, ...sent),
    )
    if (staged === undefined) return
    this.stages = createStoredStages({
      ...{ store: this.rollout, clock, events: this.context.events, kept: staged.stageFile },
      instance: () => journal.lease(),
      renewLease: () => journal.renewLease(),
      secret: () => journal.linkSecret,
      partners: () => [this.partner],
      metrics: { stageHeld: () => undefined, stageRefused: () => undefined },
      // `app.ts` uses the same fraction of the lease (`COUNTED_LEASES`).
      staleAfterMs: timing.leaseMs * 0.38,
      drainMs: staged.drainMs,
      resendWindowMs: staged.resendWindowMs,
    })
    this.relay = createSimulatedRelay({
      world,
      context: this.context,
      openV2: staged.openV2,
      headersMs: timing.headersMs,
      connections: timing.connectionsToV2,
      authorise: (_request, client) => authoriseClient(client, this.rateLimits),
    })
  }

  /** Opens the journal and starts recovery. */
  static async start(options: InstanceOptions): Promise<SimulatedInstance> {
    const { store, clock, processes, timing, onDamage } = options
    const journal = await openJournalOn(store, {
      leaseMs: timing.leaseMs,
      timeoutMs: 2_000,
      settleTimeoutMs: 10_000,
      clock,
      processes,
      keys: options.keepsCredentials ? [{ id: 'key', key: Buffer.alloc(32) }] : [],
      events: {
        failed: (reason) => {
          if (reason.includes('while it was in use')) onDamage()
        },
        recovered: () => undefined,
        leaseLost: () => undefined,
      },
    })
    const instance = new SimulatedInstance(options, journal)
    instance.recovery.start()
    await instance.stages?.start()
    return instance
  }

  /** Serves one request, like the product's write handler. */
  serve = async (sentRequest: BatchRequest, listener: ReplyListener): Promise<void> => {
    const { context, partner, clock } = this
    const { kind, authorization, contentType, body } = sentRequest
    const slices = context.slicing.open()
    const receivedMs = clock.wallMs()
    this.requests += 1
    const sent = { hasLeft: false }
    const journal = reportBegin(this.journal, listener)
    let entry: StageEntry | undefined
    try {
      const shown = { authorization, subscriptionKey: SUBSCRIPTION_KEY }
      const identity = identify(partner, shown)
      const client: Client = { partner, client: shown, owner: identity.owner, identity }
      entry = await this.stages?.enter(partner, { kind, unit: sentRequest.unit })
      if (entry !== undefined) listener.onStageEntry(entry)
      if (entry?.side === 'v2') {
        const noteUnrecorded = (id: string): void => {
          listener.onUnrecorded()
          this.stages?.noteUnrecorded(id)
        }
        const relayed = { request: sentRequest, client, entry, receivedMs, journal, noteUnrecorded, listener }
        await this.relay?.serve(relayed)
        return
      }
      const authorisation = await authoriseClient(client, this.rateLimits)
      const request = toWriteRequest(
        kind,
        partner,
        { 'content-type': contentType },
        {
          root: 'http://adapter/V2/Attendance/',
          records: 'http://adapter/V2/Attendance/AttendanceRecords',
        },
      )
      const plan = await planWrites(request, body, partner, receivedMs, noBatchLimits, slices)
      const staged = entry
      const answered = await answerWrites(
        { ...context, journal },
        authorisation,
        { request, body, receivedMs, plan, slices },
        ({ layout, msgtypeResponse, recordsUrl }, newId) => {
          if (kind === 'record') return createRecordReply(sent, listener)
          if (!plan.outcomesShown) return createMismatchReply(listener)
          const encoder = createBatchEncoder(layout, newId, msgtypeResponse, recordsUrl)
          return createBatchReply(plan, encoder, sent, listener)
        },
        () => staged && expectCurrent(staged),
      )
      this.context.journal.answered(answered.batch)
      if (answered.storedReply !== undefined) deliverStoredReply(answered.storedReply, listener)
    } catch (cause) {
      if (!(cause instanceof AdapterError)) throw cause
      if (cause.code === 'ADP_JOURNAL_DAMAGED') this.onDamage()
      if (sent.hasLeft) listener.onBroken()
      else listener.onWholeReply(errorRules[cause.code].status, cause.code, cause)
    } finally {
      entry?.release()
      this.requests -= 1
    }
  }

  get isIdle(): boolean {
    return this.requests === 0
  }

  async close(): Promise<void> {
    await this.recovery.stop()
    await this.stages?.stop()
    await this.relay?.close()
    await this.context.v3.close()
    await this.context.reader.close()
    await this.journal.close()
  }
}

/** Creates the reply to a batch, which writes the parts in order. When the reply ends, the client must be able to decode all parts. */
function createBatchReply(
  { records, changesets }: Plan,
  encoder: BatchEncoder,
  sent: { hasLeft: boolean },
  listener: ReplyListener,
): Reply {
  const parts = new Map<number, PartReply>()
  let text = ''
  let next = 0
  const write = (): void => {
    for (let part = parts.get(next); part !== undefined; part = parts.get(next)) {
      text += encoder.part(part)
      listener.onPart(next, part)
      next += 1
    }
  }
  const isWhole = (): boolean => {
    const body = Buffer.from(text + encoder.close(changesets))
    const read = decodeBatchReply(body, encoder.contentType).parts
    const isSame = ({ status, body: json }: (typeof read)[number], position: number): boolean =>
      status === parts.get(position)?.status && json === (parts.get(position)?.json ?? '')
    return read.length === records.length && read.every(isSame)
  }
  return {
    begin: () => {
      sent.hasLeft = true
      write()
    },
    isStatusSent: () => sent.hasLeft && next > 0,
    setPart: (position, part) => {
      if (!parts.has(position)) parts.set(position, part)
      if (sent.hasLeft) write()
    },
    end: () => {
      sent.hasLeft = true
      write()
      if (!isWhole()) listener.onWholeReply(500, `unreadable after ${next} parts`)
      listener.onEnd()
      return Promise.resolve()
    },
  }
}

/** Creates the reply to a single record, which passes the record's part to the listener. */
const createRecordReply = (sent: { hasLeft: boolean }, listener: ReplyListener): Reply => ({
  begin: () => undefined,
  isStatusSent: () => sent.hasLeft,
  setPart: (position, part) => {
    if (sent.hasLeft) return
    sent.hasLeft = true
    listener.onPart(position, part)
  },
  end: () => {
    listener.onEnd()
    return Promise.resolve()
  },
})

/** Creates the reply to a mismatch: 200 without parts, for every outcome of its records. */
const createMismatchReply = (listener: ReplyListener): Reply => ({
  setPart: () => undefined,
  begin: () => undefined,
  isStatusSent: () => false,
  end: () => {
    listener.onWholeReply(200, '')
    return Promise.resolve()
  },
})

/** Returns the journal for one request. It tells the listener when the batch begins. */
function reportBegin(journal: DurableJournal, listener: ReplyListener): DurableJournal {
  const begin: DurableJournal['begin'] = async (batch) => {
    listener.onBegin(batch.content, undefined)
    const result = await journal.begin(batch)
    listener.onBegin(batch.content, result)
    return result
  }
  return Object.assign(Object.create(journal) as DurableJournal, { begin })
}
