import { AdapterError } from '../../src/errors.ts'
import type { HighWaterFilePlace } from '../../src/journal/high-water.ts'
import type { Processes } from '../../src/journal/process-identity.ts'
import type { Store } from '../../src/journal/store.ts'
import type { Random } from '../../src/sandbox/random.ts'
import type { OpenConnection } from '../../src/upstream/index.ts'
import type { StageHabits } from './operator.ts'
import type { SimulatedDatabase } from './simulated-database.ts'
import { type InstanceOptions, SimulatedInstance } from './simulated-instance.ts'
import { type CommitKind, createSimulatedStore } from './simulated-store.ts'
import { type Actor, createActor, createClock, START_MS, type SteppedClock, type World } from './world.ts'

interface FleetOptions extends Pick<InstanceOptions, 'timing' | 'keepsCredentials'> {
  /** Draws how the next process posts records to V3. */
  readonly drawFormat: () => Pick<InstanceOptions, 'isMinimal' | 'writes'>
  readonly world: World
  readonly random: Random
  readonly outside: Actor
  readonly database: SimulatedDatabase
  readonly instances: number
  readonly commitKind: CommitKind
  /**
   * True if an instance can check whether the process of another instance runs. Otherwise only an expired lease shows that an instance is
   * gone.
   */
  readonly isOneMachine: boolean
  /** Draws the drift of a new process's wall clock, as a fraction of time. */
  readonly drawDrift: () => number
  readonly stages: StageHabits | undefined
  readonly openV3: (actor: Actor) => OpenConnection
  readonly openV2: (actor: Actor) => OpenConnection
  readonly onProcessEnd: (actor: Actor) => void
  readonly onDamage: (who: string) => void
}

/** Returns the name of a process. `life` counts the processes of one instance, which run one after another. */
export const processName = (number: number, life: number | string): string => `adapter${number}.${life}`

/** The instances of a history as processes: started, killed, paused and restarted. */
export class Fleet {
  /** The instances that serve. The entry of an instance that is starting or stopped is `undefined`. */
  readonly instances: (SimulatedInstance | undefined)[] = []
  highWaterFile: HighWaterFilePlace | undefined
  /** Returns true while an operator keeps all instances stopped. */
  isStopped: () => boolean = () => false
  readonly storeClock: SteppedClock
  private readonly options: FleetOptions
  private readonly actors: Actor[] = []
  private readonly lives: number[] = []
  /** The content of each instance's file with its last known stages. */
  private readonly stageFiles: (string | undefined)[] = []

  constructor(options: FleetOptions) {
    this.options = options
    this.storeClock = createClock(options.world, options.outside, 0)
  }

  openStore(actor: Actor, mark = this.highWaterFile): Store {
    const { database, commitKind } = this.options
    return createSimulatedStore(database, actor, () => this.storeClock.wallMs(), commitKind, mark)
  }

  running(): readonly SimulatedInstance[] {
    return this.instances.filter((one) => one !== undefined)
  }

  areAllRunning(): boolean {
    return this.running().length === this.options.instances
  }

  startAll(): void {
    for (let number = 0; number < this.options.instances; number += 1) this.start(number)
  }

  stopAll(): void {
    for (const number of this.actors.keys()) this.endProcess(number)
  }

  private start(number: number): void {
    const { world, outside, database, timing, keepsCredentials } = this.options
    const { stages, onDamage } = this.options
    // Does nothing if the instance already runs, or if an operator keeps all instances stopped and will start them.
    if (this.actors[number]?.isDead === false || this.isStopped()) return
    const life = (this.lives[number] ?? 0) + 1
    this.lives[number] = life
    const actor = createActor(processName(number, life))
    this.actors[number] = actor
    const clock = createClock(world, actor, this.options.drawDrift())
    const store = this.openStore(actor)
    const open = this.options.openV3(actor)
    const openV2 = this.options.openV2(actor)
    const kept = {
      load: () => Promise.resolve(this.stageFiles[number]),
      save: (text: string) => Promise.resolve(void (this.stageFiles[number] = text)),
    }
    world.log(() => `${actor.name} starts`)
    world.after(actor, 0, () => {
      SimulatedInstance.start({
        ...{
          world,
          actor,
          clock,
          store,
          openV3: open,
          timing,
          keepsCredentials,
          ...this.options.drawFormat(),
        },
        processes: this.processesOf(number, life),
        v2: stages && { ...stages, openV2, stageFile: kept },
        onDamage: () => onDamage(actor.name),
      }).then(
        (instance) => {
          world.log(() => `${actor.name} is ready, lease ${String(instance.journal.lease())}`)
          this.instances[number] = instance
        },
        (cause: unknown) => {
          // The start failed because of the store. A supervisor starts the instance again.
          actor.isDead = true
          database.abandon(actor)
          if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_DAMAGED') onDamage(actor.name)
          world.after(outside, 300, () => this.start(number))
        },
      )
    })
  }

  /** Identifies a process to the journal. All lives of an instance have the same process id, because operating systems reuse ids. */
  private processesOf(number: number, life: number): Processes {
    const boot = this.options.isOneMachine ? 'boot' : `boot ${number}`
    return {
      own: { host: 'machine', boot, pid: number, started: String(life) },
      look: (pid) => ({ alive: this.actors[pid]?.isDead === false, started: String(this.lives[pid]) }),
    }
  }

  private endProcess(number: number): void {
    const actor = this.actors[number]
    if (actor === undefined) return
    actor.isDead = true
    this.instances[number] = undefined
    this.options.database.abandon(actor)
    this.options.onProcessEnd(actor)
  }

  kill(number: number): void {
    const { world, random, outside } = this.options
    const instance = this.instances[number]
    if (instance === undefined) return
    world.log(() => `${instance.actor.name} is killed`)
    this.endProcess(number)
    world.after(outside, 100 + random.below(1_500), () => this.start(number))
  }

  killAll(): void {
    for (const number of this.actors.keys()) this.kill(number)
  }

  pause(number: number): void {
    const { world, random, timing } = this.options
    const actor = this.instances[number]?.actor
    if (actor === undefined) return
    const ms = 200 + random.below(4 * timing.leaseMs)
    world.log(() => `${actor.name} is paused for ${ms} ms`)
    actor.pausedUntilMs = Math.max(actor.pausedUntilMs, world.nowMs + ms)
  }

  /** Sometimes pauses a process a moment later. */
  pauseSoon(actor: Actor, isCalm: () => boolean): void {
    const { world, random, outside } = this.options
    if (!random.chance(0.1)) return
    world.after(outside, random.below(300), () => isCalm() || this.pause(this.actors.indexOf(actor)))
  }

  /** Ends pauses, and sets all clocks right. */
  calmDown(): void {
    const { nowMs } = this.options.world
    this.storeClock.step(START_MS + nowMs - this.storeClock.wallMs())
    for (const { actor, clock } of this.running()) {
      actor.pausedUntilMs = 0
      clock.step(START_MS + nowMs - clock.wallMs())
    }
  }
}
