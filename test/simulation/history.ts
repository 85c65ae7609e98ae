import './cheap-blobs.ts'

import { Checks } from './checks.ts'
import type { Finding } from './sent.ts'
import { Clients } from './clients.ts'
import { countTransitions, type Coverage, toTransitionCounts } from './coverage.ts'
import { Failover } from './failover.ts'
import { Fleet } from './fleet.ts'
import { createJourneysToV2, createJourneysToV3, createStoreWeather, LONG_CALL_MS } from './journeys.ts'
import { drawStages } from './operator.ts'
import { changeInitialState, SimulatedDatabase } from './simulated-database.ts'
import { createNetwork } from './simulated-network.ts'
import { replaceTimers } from './simulated-relay.ts'
import { type ServiceHabits, SimulatedService } from './simulated-service.ts'
import { createSimulatedStore } from './simulated-store.ts'
import { drawRates, drawScale, drawValues, type FaultKind, type Scale } from './swarm.ts'
import { startFaults } from './trouble.ts'
import { createActor, createClock, START_MS, replaceImmediates, World } from './world.ts'

export interface HistoryResult {
  readonly seed: number
  readonly scale: Scale
  readonly findings: readonly Finding[]
  /** The log of events, which is empty unless the caller requests it. */
  readonly log: readonly string[]
  readonly records: number
  readonly simulatedMs: number
  readonly coverage: Coverage
}

const LEASE_MS = 2_000
/** The usual wait after the faults end, in which leases of dead instances expire and unknown outcomes are read back every 5 s. */
const SETTLE_MS = 90_000
/**
 * The longest pause between retries. Pauses grow with the age of a record, so a new record may wait this long if a clock was set forward by
 * hours after its receipt.
 */
const LONGEST_PAUSE_MS = 600_000
const CHECK_EVERY_MS = 200
/** Faults that lose replies, so that an instance may never learn at which length the service cuts comments. */
const LOST_REPLIES = ['lostAfter', 'late', 'cut', 'stalled'] as const
/** The time for two rounds of reading unknown outcomes back. */
const QUIET_MS = 11_000
const DAY_MS = 86_400_000

let hasTables = false

/** Runs the history of a seed. `scale` replaces the drawn size and faults of the history. The seeds of all random numbers stay the same. */
export async function runHistory(
  seed: number,
  {
    scale: wanted,
    isTold: isLogged = false,
  }: { readonly scale?: Scale | undefined; readonly isTold?: boolean } = {},
): Promise<HistoryResult> {
  if (!hasTables) await createTables()
  hasTables = true
  const world = new World(seed, isLogged)
  const scale = wanted ?? drawScale(world.random('scale'))
  const release = replaceImmediates(world)
  const history = new History(world, scale)
  const releaseTimers = replaceTimers(world)
  const { checks } = history
  const onRejection = (cause: unknown): void => checks.reportCrash('process', cause)
  process.on('unhandledRejection', onRejection)
  try {
    await history.run()
  } catch (cause) {
    checks.reportCrash('history', cause)
  } finally {
    process.off('unhandledRejection', onRejection)
    releaseTimers()
    release()
  }
  const result = {
    seed,
    scale,
    findings: history.findings(),
    log: world.logLines(),
    records: checks.records.length,
    simulatedMs: world.nowMs,
    coverage: history.coverage(),
  }
  history.database.close()
  return result
}

/** Creates the tables of the empty journal with which every history begins. */
async function createTables(): Promise<void> {
  const world = new World(0, false)
  const release = replaceImmediates(world)
  try {
    const actor = createActor('first')
    const clock = createClock(world, actor, 0)
    const weather = { delayMs: () => 0.2, faultOf: () => undefined }
    const database = new SimulatedDatabase(world, weather, { isKept: true })
    const { openJournalOn } = await import('../../src/journal/sql-journal.ts')
    world.current = actor
    void openJournalOn(
      createSimulatedStore(database, actor, () => clock.wallMs(), 'thread'),
      { clock },
    ).then((journal) => journal.close())
    await world.runUntil(10_000)
    // The order of rows depends on hashes with this salt. The salt is fixed, so that only the seed decides the events.
    changeInitialState(countTransitions)
    changeInitialState(
      `update journal_meta set value = '${'5a17'.repeat(8)}' where name in ('identity', 'salt')`,
    )
  } finally {
    release()
  }
}

/** One history: the faults begin and end, all records settle, and the checks run. */
class History {
  readonly checks: Checks
  readonly database: SimulatedDatabase
  readonly fleet: Fleet
  readonly timing
  private readonly world: World
  private readonly scale: Scale
  private readonly random
  private readonly habits: ServiceHabits
  private readonly service: SimulatedService
  private readonly outside = createActor('outside')
  private readonly clients: Clients
  /** The stages of the history, or `undefined` if V3 serves everything. */
  private readonly stages
  private readonly failover: Failover | undefined
  private isCalm = false
  private lastFault: FaultKind | undefined
  private readonly faultPairs = new Set<string>()
  private nextCheckMs = 0
  private lastOpenMs = 0

  constructor(world: World, scale: Scale) {
    this.world = world
    this.scale = scale
    this.random = world.random('history')
    const { random, outside } = this
    const { faults, instances } = scale
    const rates = drawRates(world.random('rates'), scale)
    const drawn = world.random('settings')
    const isMinimal = drawn.chance(0.2)
    const commitKind = drawn.pick(['thread', 'server'] as const)
    const isOneMachine = drawn.chance(0.5)
    const onExisting = world
      .random('existing')
      .pick(['replace', 'replace', 'replace', 'duplicate', 'conflict'] as const)
    // With fewer calls per second the read-backs of a batch never fit into one budget. A conflict needs a read after the post, and an
    // adopted journal needs a read before the post. A batch that went to V2, or that V3 executes slowly, is read back repeatedly.
    const isReadBackFirst = onExisting === 'conflict' || faults.has('failover')
    const leastCalls = faults.has('flips') || faults.has('pace') ? 5 : isReadBackFirst ? 3 : 1
    const longCallMs = faults.has('longCalls') ? LONG_CALL_MS : 0
    this.timing = {
      leaseMs: LEASE_MS,
      budgetMs: drawn.pick([3_000, 6_000]) + longCallMs,
      // The last read follows the arrival of any request that was in transit.
      readBackAfterMs: [50, 200, 600 + longCallMs],
      headersMs: 1_000 + longCallMs,
      connectionsToV2: drawn.pick([1, 8]),
      callsPerSecond: faults.has('slowRate') ? Math.max(leastCalls, drawn.pick([1, 3, 5])) : undefined,
    }
    const isInBatches = drawn.pick([false, false, true]) || faults.has('pace')
    const writes = isInBatches ? world.random('format').pick(['json', 'multipart'] as const) : 'single'
    const formats = world.random('formats')
    const drawFormat = () =>
      faults.has('reconfigured')
        ? {
            isMinimal: formats.chance(0.5),
            writes: formats.pick(['single', 'json', 'multipart'] as const),
          }
        : ({ isMinimal, writes } as const)
    // The client of a mismatch gets 200 and does not resend its batch, so recovery must have the client's credentials.
    const keepsCredentials = faults.has('otherIds') || drawn.chance(0.6)
    this.habits = {
      onExisting,
      staleMs: faults.has('stale') ? 300 : 0,
      // If other programs write, every mark gets a new id. If a mark kept its id, the adapter could not see that another program changed
      // the mark within a second of a lost POST (docs/decisions/012).
      keepsIds: !faults.has('otherWriters'),
      values: drawValues(drawn, scale),
      storm: undefined,
      tokens: new Set(),
      // The service takes less time for a record than the partner's `batchRecordMs` allows.
      paceMs: faults.has('pace') ? world.random('pace').pick([100, 300, 550]) : 0,
    }
    const serviceActor = createActor('service')
    this.service = new SimulatedService(world, serviceActor, this.habits)
    this.stages = faults.has('flips') ? drawStages(world.random('stages'), longCallMs) : undefined
    const isCalm = (): boolean => this.isCalm
    const has = (kind: FaultKind): boolean => !this.isCalm && faults.has(kind)
    const isWithout = (...kinds: FaultKind[]): boolean => kinds.every((kind) => !faults.has(kind))
    const onFault = this.recordFault
    const weather = createStoreWeather(world, {
      random: world.random('weather'),
      rates,
      isCalm,
      has,
      onFault,
    })
    this.database = new SimulatedDatabase(world, weather)
    const { echo, comments, times } = this.habits.values
    this.checks = new Checks(world, outside, this.service, this.database, {
      resendWindowMs: this.stages?.resendWindowMs ?? 0,
      leaseOf: (actor) =>
        this.fleet
          .running()
          .find((one) => one.actor === actor)
          ?.journal.lease(),
      areClocksSound: isWithout('wallSteps', 'serviceTimes', 'values', 'drift'),
      areValuesShown:
        !comments.some((rule) => typeof rule === 'object') ||
        (echo === 'stored' && times === 'keep' && isWithout('serviceTimes', 'kill', ...LOST_REPLIES)),
      areTimesShown: echo === 'stored' || isWithout('serviceTimes'),
      keepsCredentials,
      isReplySure: isWithout('storeRefused', 'storeUnanswered', 'storeSlow', 'storeDown'),
    })
    const journeys = { random, rates, isCalm, has, onFault }
    const [drawToV3, drawToV2] = [createJourneysToV3(journeys), createJourneysToV2(journeys)]
    const { serve, serveV2 } = this.service
    const { checkRequestToV3: leavesToV3, checkRequestToV2: leavesToV2 } = this.checks
    this.fleet = new Fleet({
      ...{ world, random, outside, database: this.database, instances, timing: this.timing },
      ...{ drawFormat, keepsCredentials, commitKind, isOneMachine, stages: this.stages },
      drawDrift: () => (has('drift') ? random.pick([-0.01, 0.01]) : 0),
      openV3: (actor) =>
        createNetwork({
          ...{ world, actor, service: serviceActor, serve },
          draw: drawToV3,
          onLeave: leavesToV3,
        }),
      openV2: (actor) =>
        createNetwork({
          ...{ world, actor, service: serviceActor, serve: serveV2 },
          ...{ draw: drawToV2, onLeave: leavesToV2 },
        }),
      onProcessEnd: (actor) => this.checks.recordEnd(actor),
      onDamage: (who) => this.failover?.onDamage(who),
    })
    this.failover = faults.has('failover') ? this.createFailover() : undefined
    this.clients = new Clients({
      ...{ world, scale, rates, random, outside, checks: this.checks },
      tokens: this.habits.tokens,
      instances: this.fleet.instances,
      isCalm,
      onServedByV2: (adapter) => has('pause') && this.fleet.pauseSoon(adapter, isCalm),
    })
    world.log(
      () =>
        `${instances} instances, ${writes}, ${this.habits.onExisting}, ${JSON.stringify(this.habits.values)}, faults: ${[...faults].join(' ')}`,
    )
  }

  private createFailover(): Failover {
    const { world, random, outside, checks, database, scale, fleet } = this
    const failover = new Failover({
      ...{ world, random, outside, checks, database, instances: scale.instances },
      hasKills: scale.faults.has('kill'),
      isCalm: () => this.isCalm,
      openStore: (actor, mark) => fleet.openStore(actor, mark),
      stopAll: () => fleet.stopAll(),
      startAll: () => fleet.startAll(),
      killAll: () => fleet.killAll(),
    })
    fleet.highWaterFile = failover.highWaterFile
    fleet.isStopped = () => failover.isRepairing
    return failover
  }

  findings(): readonly Finding[] {
    const { findings } = this.checks
    return this.failover === undefined ? findings : findings.filter(this.failover.isNotExcused)
  }

  coverage(): Coverage {
    const rows = this.database.all<{ name: string; count: number }>('select name, count from reached')
    return { transitions: toTransitionCounts(rows), faults: [...this.faultPairs] }
  }

  private readonly recordFault = (kind: FaultKind): void => {
    if (this.lastFault !== undefined) this.faultPairs.add(`${this.lastFault} then ${kind}`)
    this.lastFault = kind
  }

  async run(): Promise<void> {
    const { world, random, outside, scale, fleet, service, habits, failover, stages, checks, clients } = this
    fleet.startAll()
    for (let number = 0; number < scale.clients; number += 1) clients.start(number)
    const isCalm = (): boolean => this.isCalm
    const onFault = this.recordFault
    startFaults({
      ...{ world, random, outside, scale, fleet, service, habits, failover, stages, isCalm, onFault },
      onAllOnV3: checks.checkStepToV3,
    })
    // After the last client is done, further faults would have no effect.
    await world.runUntil(3_000 + random.below(5_000), () => this.isCheckDue() && this.isIdle())
    this.calmDown()
    // Clients may never get an answer about records that the database has lost, so the wait is short.
    const isSlow = scale.faults.has('longCalls') || scale.faults.has('pace')
    const settleMs = (this.database.hasLostCommits ? SETTLE_MS / 5 : SETTLE_MS) * (isSlow ? 5 : 1)
    const pauseMs = scale.faults.has('wallSteps') ? LONGEST_PAUSE_MS : 0
    await world.runUntil(world.nowMs + settleMs + pauseMs, () => this.isSettled())
    clients.isStopped = true
    await world.runUntil(world.nowMs + 20_000, () => checks.isIdle())
    // Late events must not change any outcome. Requests that the store has received are executed, and their transactions end.
    await world.runUntil(world.nowMs + (scale.faults.has('storeStalls') ? 10_000 : 2_000))
    await world.runUntil(world.nowMs + 1_000, () => !this.database.isChanging)
    checks.checkEnd()
    const running = fleet.running()
    for (const instance of running) {
      world.current = instance.actor
      void instance.close()
    }
    await world.runUntil(world.nowMs + 15_000)
    for (const { actor } of running) {
      const left = actor.isDead ? 0 : world.countPending(actor)
      if (left > 0) checks.report('leftover', actor.name, `${left} timers are left after its end`)
    }
    await this.expire()
  }

  /** Purges the journal as it would be a day and a half later, and checks the remaining rows. */
  private async expire(): Promise<void> {
    const { purge } = await import('../../src/journal/retention.ts')
    const operator = createActor('operator')
    const periods = { replayForMs: DAY_MS, keepRecordsMs: 2 * DAY_MS }
    this.world.current = operator
    const nowMs = START_MS + this.world.nowMs + 1.5 * DAY_MS
    void purge(this.fleet.openStore(operator), periods, nowMs, Number.MAX_SAFE_INTEGER)
    await this.world.runUntil(this.world.nowMs + 5_000)
    this.checks.checkExpired()
  }

  private calmDown(): void {
    this.world.log(() => 'the faults end')
    this.isCalm = true
    this.lastOpenMs = this.world.nowMs
    this.habits.storm = undefined
    this.fleet.calmDown()
    this.clients.calmDown()
  }

  private isCheckDue(): boolean {
    if (this.world.nowMs < this.nextCheckMs) return false
    this.nextCheckMs = this.world.nowMs + CHECK_EVERY_MS
    return true
  }

  private isIdle(): boolean {
    const { clients, checks } = this
    return clients.areDone() && checks.isIdle() && checks.openRecords().every(({ state }) => state !== 0)
  }

  private isSettled(): boolean {
    if (!this.isCheckDue() || !this.fleet.areAllRunning()) return false
    const { checks, world } = this
    if (checks.unansweredRecords().length > 0 || checks.unsettledRecords().length > 0) {
      this.lastOpenMs = world.nowMs
      return false
    }
    // Records that may stay unknown are read back without end, so `isIdle` alone might never return true.
    return world.nowMs > this.lastOpenMs + QUIET_MS || this.isIdle()
  }
}
