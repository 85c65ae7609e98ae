import { createRequire, syncBuiltinESMExports } from 'node:module'

import type { WallClock } from '../../src/clock.ts'
import { createRandom, type Random } from '../../src/sandbox/random.ts'

/** A process, or the environment of the processes. */
export interface Actor {
  readonly name: string
  /** True if the actor died. Its pending events are dropped. */
  isDead: boolean
  pausedUntilMs: number
  /** The number of times that the actor's wall clock was set. */
  clockSteps: number
}

export function createActor(name: string): Actor {
  return { name, isDead: false, pausedUntilMs: 0, clockSteps: 0 }
}

interface Event {
  readonly atMs: number
  /** The order of events at the same time. The event with the lowest number comes first. */
  readonly order: number
  readonly actor: Actor
  readonly act: () => void
  isCancelled: boolean
}

/** The number of simulated events after which the real event loop of Node.js runs once. */
const TURN = 1_000

/** The start of simulated time in milliseconds since the epoch, at a full hour, so that no rounding of a service changes it. */
export const START_MS = Date.parse('2026-03-02T09:00:00.000Z')

/**
 * Simulated time and all events that wait for it. One event runs at a time, and all its promise callbacks run before the next event, so the
 * seed decides the whole order.
 */
export class World {
  readonly seed: number
  nowMs = 0
  /** The actor whose code is running. */
  current: Actor = createActor('world')
  private readonly events: Event[] = []
  private readonly ties: Random
  private immediates = 0
  private usesStreams = false
  private readonly lines: string[] | undefined

  constructor(seed: number, isLogged: boolean) {
    this.seed = seed
    this.ties = createRandom(seed, 'ties')
    this.lines = isLogged ? [] : undefined
  }

  /** Returns a separate stream of random numbers, so that random choices for one purpose do not change the choices for others. */
  random(name: string): Random {
    return createRandom(this.seed, name)
  }

  log(text: () => string): void {
    this.lines?.push(`${this.nowMs.toFixed(1).padStart(9)} ${text()}`)
  }

  logLines(): readonly string[] {
    return this.lines ?? []
  }

  /** Runs `act` after the delay, unless its actor has died. Returns a function that cancels the event. */
  after(actor: Actor, delayMs: number, act: () => void): () => void {
    return this.push({ atMs: this.nowMs + Math.max(0, delayMs), order: this.ties.next(), actor, act })
  }

  /** Implements `setImmediate` for the running actor: in the order of the calls, before all events that wait for time. */
  afterEvent(act: () => void): () => void {
    this.immediates += 1
    return this.push({ atMs: this.nowMs, order: this.immediates - 1e9, actor: this.current, act })
  }

  private push(event: Omit<Event, 'isCancelled'>): () => void {
    const pushed = { ...event, isCancelled: false }
    insert(this.events, pushed)
    return () => {
      pushed.isCancelled = true
    }
  }

  /** Resolves after this delay, but never if the actor dies. */
  wait(actor: Actor, delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.after(actor, delayMs, resolve))
  }

  /** Runs the events up to this time, until none is left or `isOver` returns true. */
  async runUntil(untilMs: number, isOver: () => boolean = () => false): Promise<void> {
    for (let hops = 0; ; hops += 1) {
      // Node.js reports unhandled rejections only between turns of its event loop.
      if (hops % TURN === 0) await nextTurn()
      const [next] = this.events
      if (next === undefined || next.atMs > untilMs) break
      if (isOver()) return
      removeFirst(this.events)
      if (next.isCancelled || next.actor.isDead) continue
      if (next.actor.pausedUntilMs > next.atMs) {
        insert(this.events, Object.assign(next, { atMs: next.actor.pausedUntilMs }))
        continue
      }
      this.nowMs = Math.max(this.nowMs, next.atMs)
      this.current = next.actor
      next.act()
      await promisesSettled()
      if (!this.usesStreams) continue
      this.usesStreams = false
      await nextTurn()
    }
    await nextTurn()
    if (untilMs !== Infinity) this.nowMs = Math.max(this.nowMs, untilMs)
  }

  /** Marks the current event as one that uses Node.js streams, which need a turn of the real event loop. */
  markStreamUse(): void {
    this.usesStreams = true
  }

  countPending(actor: Actor): number {
    return this.events.filter((event) => event.actor === actor && !event.isCancelled).length
  }
}

/** The clocks of a process. `step` changes only the wall clock. */
export interface SteppedClock extends WallClock {
  step(ms: number): void
}

export function createClock(world: World, actor: Actor, drift: number): SteppedClock {
  let steppedMs = 0
  return {
    nowMs: () => world.nowMs,
    wallMs: () => START_MS + steppedMs + world.nowMs * (1 + drift),
    after: (delayMs, act) => world.after(actor, delayMs, act),
    step: (ms) => {
      steppedMs += ms
      actor.clockSteps += 1
    },
  }
}

const require = createRequire(import.meta.url)
const timers = require('node:timers/promises') as { setImmediate: unknown }
const real = { global: setImmediate }

/** Resolves when all promise callbacks have run, because `nextTick` comes after them. */
const promisesSettled = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve))

/** Resolves after a turn of the real event loop, in which streams have also run their chained `nextTick` callbacks. */
const nextTurn = (): Promise<void> => new Promise((resolve) => void real.global(resolve))

let activeWorld: World | undefined

globalThis.setImmediate = ((act: (...given: unknown[]) => void, ...given: unknown[]) =>
  activeWorld === undefined
    ? real.global(act, ...given)
    : activeWorld.afterEvent(() => act(...given))) as typeof setImmediate
timers.setImmediate = (value: unknown) => new Promise((resolve) => void setImmediate(() => resolve(value)))
syncBuiltinESMExports()

/** Replaces `setImmediate` of this process by the `setImmediate` of a world until the returned function is called. */
export function replaceImmediates(world: World): () => void {
  activeWorld = world
  return () => {
    activeWorld = undefined
  }
}

const isBefore = (one: Event, other: Event): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)

/** Inserts an event into a binary heap with the earliest event first. */
function insert(heap: Event[], event: Event): void {
  let at = heap.push(event) - 1
  while (at > 0) {
    const above = (at - 1) >> 1
    const parent = heap[above]
    if (parent === undefined || !isBefore(event, parent)) break
    heap[at] = parent
    at = above
  }
  heap[at] = event
}

function removeFirst(heap: Event[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let at = 0
  for (;;) {
    const left = 2 * at + 1
    const [one, other] = [heap[left], heap[left + 1]]
    if (one === undefined) break
    const [least, child] = other !== undefined && isBefore(other, one) ? [left + 1, other] : [left, one]
    if (!isBefore(child, last)) break
    heap[at] = child
    at = least
  }
  heap[at] = last
}
