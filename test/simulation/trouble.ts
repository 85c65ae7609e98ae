import type { Random } from '../../src/sandbox/random.ts'
import { keyOf } from './clients.ts'
import type { Failover } from './failover.ts'
import type { Fleet } from './fleet.ts'
import { createOperator, type StageHabits } from './operator.ts'
import type { ServiceHabits, SimulatedService } from './simulated-service.ts'
import { changeTimes, type FaultKind, type Scale } from './swarm.ts'
import type { Actor, World } from './world.ts'

interface TroubleOptions {
  readonly world: World
  readonly random: Random
  readonly outside: Actor
  readonly scale: Scale
  readonly fleet: Fleet
  readonly service: SimulatedService
  readonly habits: ServiceHabits
  readonly failover: Failover | undefined
  readonly stages: StageHabits | undefined
  readonly isCalm: () => boolean
  /** Called when an operator has moved all schools to V3. */
  readonly onAllOnV3: () => void
  readonly onFault: (kind: FaultKind) => void
}

/** Starts the faults that occur by themselves. Each kind recurs until there are no more faults. */
export function startFaults(options: TroubleOptions): void {
  const { world, random, outside, scale, fleet, service, habits, failover, stages, isCalm } = options
  const every = (kind: FaultKind, maxMs: number, act: () => void): void => {
    if (!scale.faults.has(kind)) return
    const next = (): void =>
      void world.after(outside, 100 + random.below(maxMs), () => {
        if (isCalm()) return
        options.onFault(kind)
        act()
        next()
      })
    next()
  }
  const anyInstance = (): number => random.below(scale.instances)
  every('kill', 3_000, () => fleet.kill(anyInstance()))
  every('pause', 2_500, () => fleet.pause(anyInstance()))
  const operator = stages && createOperator(world, world.random('operator'), stages, options.onAllOnV3)
  const changeStage = (): void => {
    const instance = fleet.instances[anyInstance()]
    if (instance !== undefined) world.after(instance.actor, 0, () => void operator?.change(instance))
  }
  every('flips', 1_500, changeStage)
  // Faults matter most just after the service has applied a write.
  service.onEffect = () => {
    if (isCalm()) return
    const soonMs = random.next() * 20
    if (scale.faults.has('kill') && random.chance(0.15))
      world.after(outside, soonMs, () => isCalm() || fleet.kill(anyInstance()))
    if (scale.faults.has('pause') && random.chance(0.15))
      world.after(outside, soonMs, () => isCalm() || fleet.pause(anyInstance()))
    if (scale.faults.has('flips') && random.chance(0.15))
      world.after(outside, soonMs, () => isCalm() || changeStage())
  }
  // No step is a few minutes long. When such a step is undone, retries would wait for minutes, because the journal ignores a due time only
  // if it is more than 11 minutes ahead.
  const step = (): number => random.pick([1_000, -1_000, 7_200_000, -7_200_000, 1_200_000, -1_200_000])
  every('wallSteps', 2_000, () => {
    const instance = fleet.instances[anyInstance()]
    const ms = step()
    world.log(() => `the clock of ${instance?.actor.name ?? 'no instance'} is set by ${ms / 1_000} s`)
    instance?.clock.step(ms)
  })
  every('storeSteps', 3_000, () => {
    const ms = step()
    world.log(() => `the clock of the store is set by ${ms / 1_000} s`)
    fleet.storeClock.step(ms)
  })
  every('failover', 3_000, () => failover?.start())
  every('serviceTimes', 1_000, () => {
    habits.values = changeTimes(random, habits.values)
    world.log(() => `service: ${JSON.stringify(habits.values)}`)
  })
  every('otherWriters', 1_500, () =>
    service.writeAsOtherProgram(keyOf(random.below(scale.schools), random.below(scale.keys))),
  )
  const storm = (isApplied: boolean) => (): void => {
    const status = isApplied ? 500 : random.pick([429, 503, 503, 500] as const)
    world.log(() => `service: a storm of ${status} begins`)
    habits.storm = { status, share: random.pick([0.3, 1]), isApplied }
    world.after(outside, 200 + random.below(800), () => (habits.storm = undefined))
  }
  every('storm', 2_500, storm(false))
  every('appliedErrors', 2_500, storm(true))
}
