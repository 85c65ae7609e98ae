import { type GuardVerdict, judge } from '../../../src/rollout/guards/sequential-test.ts'
import { type BadShare, createRandom, simulate, type SimulatedSchool, WINDOW_MS } from './simulate.ts'

interface Burst {
  readonly startMs: number
  readonly endMs: number
  readonly share: number
}

/**
 * Runs the guards over writes that fail on V3 as often as on V2. Each school has a failure rate of its own, one school sends three times
 * as many batches, the failure rates drift over the day, and at times V2 and V3 fail together for seconds or minutes.
 */
export function runWithoutFault(
  seed: number,
  windows: number,
): { readonly state: GuardVerdict; readonly v3Records: number } {
  const random = createRandom(seed)
  const between = (least: number, most: number): number => least * (most / least) ** random()
  const onV3 = between(0.1, 0.9)
  const batches = between(0.05, 1)
  const records = Math.round(between(1, 40))
  const rates = new Map<string, number>()
  const schools: SimulatedSchool[] = Array.from({ length: Math.round(between(10, 30)) }, (_, index) => {
    const name = `school ${index}`
    rates.set(name, Math.exp(0.4 * normal(random)))
    const side = index < 2 ? (index === 0 ? 'v3' : 'v2') : random() < onV3 ? 'v3' : 'v2'
    return {
      name,
      side,
      batches: index === 0 ? 3 * batches : batches,
      records: Math.max(1, Math.round(records * between(0.7, 1.4))),
    }
  })
  const level = {
    unknown: between(0.0001, 0.01),
    serverError: between(0.0001, 0.01),
    refused: between(0.0005, 0.03),
  }
  const bursts: Burst[] = Array.from({ length: Math.round(windows / between(20, 200)) }, () => {
    const startMs = random() * windows * WINDOW_MS
    return { startMs, endMs: startMs + between(1_000, 300_000), share: between(0.02, 0.9) }
  }).sort((one, other) => one.startMs - other.startMs)
  let next = 0
  let under: Burst[] = []
  const badShare: BadShare = (school, nowMs) => {
    for (
      let burst = bursts[next];
      burst !== undefined && burst.startMs < nowMs + WINDOW_MS;
      burst = bursts[++next]
    )
      under.push(burst)
    if (under.length > 0) under = under.filter(({ endMs }) => endMs > nowMs - WINDOW_MS)
    const burst = Math.max(
      0,
      ...under.filter(({ startMs, endMs }) => startMs <= nowMs && nowMs < endMs).map(({ share }) => share),
    )
    const drift =
      (rates.get(school.name) ?? 1) * Math.exp(1.5 * Math.sin((nowMs / WINDOW_MS / 700) * 2 * Math.PI))
    return {
      unknown: Math.min(1, level.unknown * drift + burst),
      serverError: Math.min(1, level.serverError * drift + burst),
      refused: Math.min(1, level.refused * drift),
    }
  }
  let state: GuardVerdict | undefined
  const run = simulate(schools, badShare, random, (now) => {
    state = judge(now.evidence)
    return state.kind === 'alarm' || now.windows >= windows
  })
  state ??= judge(run.evidence)
  return { state, v3Records: run.v3Records }
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
