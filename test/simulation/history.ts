import type { Random } from '../../src/sandbox/random.ts'
import { Checks, type Finding } from './checks.ts'
import { Clients, keyOf } from './clients.ts'
import { SimulatedInstance, type Timing } from './simulated-instance.ts'
import { createNetwork, type Journey, type ServiceRequest } from './simulated-network.ts'
import { type ServiceHabits, SimulatedService } from './simulated-service.ts'
import {
  type CommitKind,
  createSimulatedStore,
  SimulatedDatabase,
  type StoreWeather,
} from './simulated-store.ts'
import {
  changeTimes,
  drawRates,
  drawScale,
  drawValues,
  type FaultKind,
  type Rates,
  type Scale,
} from './swarm.ts'
import { createActor, createClock, START_MS, type SteppedClock, takeImmediates, World } from './world.ts'

export interface HistoryResult {
  readonly seed: number
  readonly scale: Scale
  readonly findings: readonly Finding[]
  /** What happened, in words; empty unless it was asked for. */
  readonly story: readonly string[]
  readonly records: number
  readonly simulatedMs: number
}

const LEASE_MS = 2_000
/** Time for everything after the faults: dead instances lose their leases, unknown outcomes are read again after 5 s. */
const SETTLE_MS = 90_000

let image: Uint8Array | undefined

/** Runs the history that a seed draws, or a smaller one with what else is drawn alike. */
export async function runHistory(
  seed: number,
  { scale: wanted, isTold = false }: { readonly scale?: Scale | undefined; readonly isTold?: boolean } = {},
): Promise<HistoryResult> {
  image ??= await makeImage()
  const world = new World(seed, isTold)
  const scale = wanted ?? drawScale(world.random('scale'))
  const release = takeImmediates(world)
  const history = new History(world, scale)
  try {
    await history.run(image)
  } catch (cause) {
    history.checks.find(
      'crash',
      'history',
      cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
    )
  } finally {
    release()
    history.end()
  }
  return {
    seed,
    scale,
    findings: history.checks.findings,
    story: world.told(),
    records: history.checks.records.length,
    simulatedMs: world.nowMs,
  }
}

/** The tables of an empty journal, which all histories begin with. */
async function makeImage(): Promise<Uint8Array> {
  const world = new World(0, false)
  const release = takeImmediates(world)
  try {
    const actor = createActor('first')
    const clock = createClock(world, actor, 0)
    const database = new SimulatedDatabase(world, calmWeather, undefined)
    const { openJournalOn } = await import('../../src/journal/sql-journal.ts')
    world.current = actor
    void openJournalOn(
      createSimulatedStore(database, actor, () => clock.wallMs(), 'thread'),
      { clock },
    ).then((journal) => journal.close())
    await world.runUntil(10_000)
    return database.image()
  } finally {
    release()
  }
}

const calmWeather: StoreWeather = { delayMs: () => 0.2, faultOf: () => undefined }

class History {
  readonly checks: Checks
  private readonly world: World
  private readonly scale: Scale
  private readonly rates: Rates
  private readonly random: Random
  private readonly weatherRandom: Random
  private readonly timing: Timing
  private readonly isMinimal: boolean
  private readonly commitKind: CommitKind
  private readonly habits: ServiceHabits
  private readonly service: SimulatedService
  private readonly serviceActor = createActor('service')
  private readonly outside = createActor('outside')
  private readonly instances: (SimulatedInstance | undefined)[] = []
  private readonly clients: Clients
  private readonly instanceNames: number[] = []
  private database: SimulatedDatabase | undefined
  private storeClock: SteppedClock
  private storeSteppedMs = 0
  private isCalm = false

  constructor(world: World, scale: Scale) {
    this.world = world
    this.scale = scale
    this.random = world.random('history')
    this.weatherRandom = world.random('weather')
    this.rates = drawRates(world.random('rates'), scale)
    const drawn = world.random('settings')
    this.isMinimal = drawn.chance(0.2)
    this.commitKind = drawn.pick(['thread', 'server'])
    this.timing = {
      leaseMs: LEASE_MS,
      budgetMs: drawn.pick([3_000, 6_000]),
      readBackAfterMs: [50, 200, 600],
      headersMs: 1_000,
      callsPerSecond: scale.faults.has('slowRate') ? drawn.pick([1, 3, 5]) : undefined,
    }
    this.habits = {
      onExisting: drawn.pick(['replace', 'replace', 'replace', 'duplicate', 'conflict']),
      staleMs: scale.faults.has('stale') ? 300 : 0,
      // A mark that another program changed within the second of a lost POST would be taken for the one before (docs/decisions/012).
      keepsIds: !scale.faults.has('otherWriters'),
      values: drawValues(drawn, scale),
      storm: undefined,
      tokens: new Set(),
    }
    this.service = new SimulatedService(world, this.habits)
    this.checks = new Checks(world, this.outside, this.service)
    this.storeClock = createClock(world, this.outside, 0)
    this.clients = new Clients({
      ...{ world, scale, rates: this.rates, random: this.random, outside: this.outside, checks: this.checks },
      tokens: this.habits.tokens,
      instances: this.instances,
      isCalm: () => this.isCalm,
    })
  }

  private has(kind: FaultKind): boolean {
    return !this.isCalm && this.scale.faults.has(kind)
  }

  end(): void {
    this.database?.close()
  }

  async run(start: Uint8Array): Promise<void> {
    const { world, scale } = this
    const onRejection = (cause: unknown): void =>
      this.checks.find(
        'crash',
        'process',
        cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
      )
    process.on('unhandledRejection', onRejection)
    try {
      this.database = new SimulatedDatabase(world, this.weather(), start)
      this.checks.database = this.database
      world.tell(
        () =>
          `${scale.instances} instances, ${this.habits.onExisting}, ${JSON.stringify(this.habits.values)}, faults: ${[...scale.faults].join(' ')}`,
      )
      for (let number = 0; number < scale.instances; number += 1) this.startInstance(number)
      for (let number = 0; number < scale.clients; number += 1) this.clients.start(number)
      this.startTrouble()
      const troubleMs = 3_000 + this.random.below(5_000)
      await world.runUntil(troubleMs)
      this.calmDown()
      const untilMs = world.nowMs + SETTLE_MS
      await world.runUntil(untilMs, () => this.isSettled())
      // Whatever still comes must change nothing.
      await world.runUntil(world.nowMs + 2_000)
      this.clients.isOver = true
      this.checks.checkEnd()
      const running = this.instances.filter((one) => one !== undefined)
      for (const instance of running) {
        world.current = instance.actor
        void instance.close()
      }
      await world.runUntil(world.nowMs + 15_000)
      for (const { actor } of running) {
        const left = world.waiting(actor)
        if (left > 0) this.checks.find('leftover', actor.name, `${left} timers are left after its end`)
      }
    } finally {
      process.off('unhandledRejection', onRejection)
    }
  }

  private weather(): StoreWeather {
    const random = this.weatherRandom
    const { storeRefused, storeUnanswered, storeSlow } = this.rates
    return {
      delayMs: () => (!this.isCalm && random.chance(storeSlow) ? random.below(800) : random.next()),
      // A start asks some fifty times.
      faultOf: (what) => {
        if (this.isCalm) return undefined
        const share = what === 'commit' ? 1 / 2 : 1 / 50
        if (random.chance(storeRefused * share)) return { kind: 'refused' }
        return random.chance(storeUnanswered * share) ? { kind: 'unanswered' } : undefined
      },
    }
  }

  private draw = ({ method }: ServiceRequest): Journey => {
    const { random, rates } = this
    const longest = this.has('slowService') ? 200 : 20
    const quick = { thereMs: 1 + random.below(longest), backMs: 1 + random.below(longest) }
    if (this.isCalm) return quick
    if (random.chance(rates.refusedConnections)) return { ...quick, refused: true }
    if (random.chance(rates.lostBefore))
      return {
        ...quick,
        thereMs: undefined,
        breaksAfterMs: random.chance(0.7) ? random.below(200) : undefined,
      }
    if (random.chance(rates.lostAfter))
      return {
        ...quick,
        backMs: undefined,
        breaksAfterMs: random.chance(0.7) ? 40 + random.below(300) : undefined,
      }
    // The connection breaks while the request is still on its way; later than a read-back would wait for it counts as never.
    if (method === 'POST' && random.chance(rates.late))
      return { thereMs: 100 + random.below(350), backMs: undefined, breaksAfterMs: random.below(50) }
    if (random.chance(rates.stalled)) return { thereMs: quick.thereMs, backMs: 900 + random.below(400) }
    if (random.chance(rates.cut)) return { ...quick, cutAfter: random.below(200) }
    return quick
  }

  private startInstance(number: number): void {
    const { world, database, timing } = this
    const life = (this.instanceNames[number] ?? 0) + 1
    this.instanceNames[number] = life
    const actor = createActor(`adapter${number}.${life}`)
    const drift = this.has('drift') ? this.random.pick([-0.01, 0.01]) : 0
    const clock = createClock(world, actor, drift)
    if (database === undefined) return
    const store = createSimulatedStore(database, actor, () => this.storeClock.wallMs(), this.commitKind)
    const open = createNetwork({
      world,
      actor,
      service: this.serviceActor,
      serve: this.service.serve,
      draw: this.draw,
    })
    world.tell(() => `${actor.name} starts`)
    world.at(actor, 0, () => {
      SimulatedInstance.start({
        world,
        actor,
        clock,
        store,
        open,
        timing,
        isMinimal: this.isMinimal,
        onBegin: this.clients.onBegin,
      }).then(
        (instance) => {
          world.tell(() => `${actor.name} is ready, lease ${String(instance.journal.lease())}`)
          this.instances[number] = instance
        },
        () => {
          // The store failed: a supervisor starts it again.
          actor.isDead = true
          database.abandon(actor)
          world.at(this.outside, 300, () => this.startInstance(number))
        },
      )
    })
  }

  private kill(number: number): void {
    const instance = this.instances[number]
    if (instance === undefined) return
    const { actor } = instance
    this.world.tell(() => `${actor.name} is killed`)
    actor.isDead = true
    this.instances[number] = undefined
    this.database?.abandon(actor)
    for (const batch of this.checks.batches) batch.atWork = batch.atWork.filter((one) => one !== actor)
    this.world.at(this.outside, 100 + this.random.below(1_500), () => this.startInstance(number))
  }

  private pause(number: number): void {
    const { world, random } = this
    const actor = this.instances[number]?.actor
    if (actor === undefined) return
    const ms = 200 + random.below(3 * LEASE_MS)
    world.tell(() => `${actor.name} stands still for ${ms} ms`)
    actor.pausedUntilMs = Math.max(actor.pausedUntilMs, world.nowMs + ms)
  }

  private startTrouble(): void {
    const { world, random, outside, scale } = this
    const every = (kind: FaultKind, maxMs: number, act: () => void): void => {
      if (!scale.faults.has(kind)) return
      const next = (): void =>
        void world.at(outside, 100 + random.below(maxMs), () => {
          if (this.isCalm) return
          act()
          next()
        })
      next()
    }
    every('kill', 3_000, () => this.kill(random.below(scale.instances)))
    every('pause', 2_500, () => this.pause(random.below(scale.instances)))
    // The moments around a write are those that matter.
    this.service.onEffect = () => {
      const soonMs = random.next() * 20
      if (this.has('kill') && random.chance(0.15))
        world.at(outside, soonMs, () => this.isCalm || this.kill(random.below(scale.instances)))
      if (this.has('pause') && random.chance(0.15))
        world.at(outside, soonMs, () => this.isCalm || this.pause(random.below(scale.instances)))
    }
    const step = (): number => random.pick([1_000, -1_000, 7_200_000, -7_200_000, 600_000, -600_000])
    every('wallSteps', 2_000, () => {
      const instance = this.instances[random.below(scale.instances)]
      const ms = step()
      world.tell(() => `clock of ${instance?.actor.name ?? 'none'} is set by ${ms / 1_000} s`)
      instance?.clock.step(ms)
    })
    every('storeSteps', 3_000, () => {
      const ms = step()
      world.tell(() => `clock of the store is set by ${ms / 1_000} s`)
      this.storeSteppedMs += ms
      this.storeClock.step(ms)
    })
    every('serviceTimes', 1_000, () => {
      this.habits.values = changeTimes(random, this.habits.values)
      world.tell(() => `service: ${JSON.stringify(this.habits.values)}`)
    })
    every('otherWriters', 1_500, () => this.service.writePast(keyOf(random.below(scale.keys))))
    const storm = (isApplied: boolean) => (): void => {
      const status = isApplied ? 500 : random.pick([429, 503, 503, 500] as const)
      world.tell(() => `service: storm of ${status}`)
      this.habits.storm = { status, share: random.pick([0.3, 1]), isApplied }
      world.at(outside, 200 + random.below(800), () => (this.habits.storm = undefined))
    }
    every('storm', 2_500, storm(false))
    every('appliedErrors', 2_500, storm(true))
  }

  private calmDown(): void {
    this.world.tell(() => 'the faults end')
    this.isCalm = true
    this.habits.storm = undefined
    this.storeClock.step(-this.storeSteppedMs)
    for (const instance of this.instances) {
      if (instance === undefined) continue
      instance.actor.pausedUntilMs = 0
      instance.clock.step(START_MS + this.world.nowMs - instance.clock.wallMs())
    }
    this.clients.calmDown()
  }

  private isSettled(): boolean {
    if (!this.isCalm || this.instances.includes(undefined) || this.instances.length < this.scale.instances)
      return false
    return (
      this.clients.areDone() &&
      this.checks.batches.every(({ atWork }) => atWork.length === 0) &&
      this.checks.openRecords().every(({ state }) => state !== 0)
    )
  }
}
