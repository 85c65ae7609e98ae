import { mkdtempSync, rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type Child, startChild } from './child.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

/** The processor core of the adapters, and the core of all other processes. */
const [MEASURED, BESIDE] = [0, 1]
const loads = { busy: '16 clients', calm: '4 clients that pause' } as const
type Load = keyof typeof loads
const ROUND_MS = 4_000
const ROUNDS = 8
/** The number of first rounds that do not count, because V8 compiles in them. */
const WARM_UPS = 3
/** The longest time that a round waits for the comparisons of the previous round, in ms. */
const DRAIN_MS = 20_000
/** The limit of one partner's comparisons in progress, which a V3 that never answers fills. */
const MAX_STALLED = 128
/** The largest quotient of the highest and the lowest noise at which the aim can count as met. */
const QUIET = 1.5

const names = ['sound 100 %', 'sound 0 %', 'sound 0 % again', 'stalled 100 %', 'stalled 0 %'] as const
type Name = (typeof names)[number]

interface Measured {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicros: number
}
type Rounds = ReadonlyMap<Name, readonly Measured[]>

/**
 * Measures batches of 30 that V2 serves at stage `shadow`, with a journal in SQLite. Compares an adapter that compares every exchange with
 * one that compares none, for a sound V3 and for a V3 that never answers. The noise is the ratio of two adapters that compare nothing.
 */
export async function benchCompareLive(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-'))
  const sandbox = await startChild('compare-sandbox-process.ts', [], BESIDE)
  const { port: v3Port = 0, v2Port = 0 } = sandbox.ready
  const kept = await startChild('kept-reply-process.ts', [v2Port, v3Port], BESIDE)
  const { v2Port: servingPort = 0, v3Port: soundPort = 0, stalledPort = 0 } = kept.ready
  const adapters = new Map<Name, Child>()
  const children = [sandbox, kept]
  try {
    for (const [index, name] of names.entries()) {
      const port = name.startsWith('sound') ? soundPort : stalledPort
      const journal = `sqlite:${join(folder, `${index}.db`)}`
      const [v3Url, v2Url] = [port, servingPort].map((own) => `http://127.0.0.1:${own}`)
      const percent = name.endsWith('100 %') ? 100 : 0
      const args = [v3Url ?? '', journal, v2Url ?? '', percent]
      const adapter = await startChild('adapter-process.ts', args, MEASURED)
      adapter.pinThreads('markbridge-journal', BESIDE)
      adapters.set(name, adapter)
      children.push(adapter)
    }
    const portOf = (name: Name): number => adapters.get(name)?.ready['port'] ?? 0
    const load = await startChild(
      'class-load-process.ts',
      [ROUND_MS, v3Port, servingPort, ...names.map(portOf)],
      BESIDE,
    )
    children.push(load)
    // All batches first go directly to V2, so that its replies are stored. If they went to an adapter, it would have more compiled code
    // than the others.
    await load.ask(`all:${servingPort}`)
    await load.ask(`each:${portOf('sound 100 %')}`)
    const drain = async (): Promise<void> => {
      await drained(portOf('sound 100 %'), 0)
      await drained(portOf('stalled 100 %'), MAX_STALLED)
    }
    await drain()
    const cpuOf = async (name: Name): Promise<number> =>
      (await adapters.get(name)?.ask('cpu'))?.['cpuMs'] ?? Number.NaN
    const measureBy =
      (kind: Load) =>
      async (name: Name): Promise<Measured> => {
        await drain()
        const before = await cpuOf(name)
        const { requests = 0, ms = 0, p50Ms = 0, p99Ms = 0 } = await load.ask(`${kind}:${portOf(name)}`)
        const cpuMicros = (((await cpuOf(name)) - before) * 1_000) / requests
        return { perSecond: (requests * 1_000) / ms, p50Ms, p99Ms, cpuMicros }
      }
    await interleave(names, WARM_UPS - 1, measureBy('busy'))
    const rows = [
      ...toRows('busy', await interleave(names, ROUNDS, measureBy('busy'))),
      ...toRows('calm', await interleave(names, ROUNDS, measureBy('calm'))),
    ]
    await drain()
    for (const name of names) rows.push(await toBalance(name, portOf(name)))
    return rows
  } finally {
    for (const child of children.reverse()) await child.stop()
    rmSync(folder, { recursive: true })
  }
}

/** Reads the metrics of live comparison, by name and labels. */
async function comparisons(port: number): Promise<ReadonlyMap<string, number>> {
  const reply = await fetch(`http://127.0.0.1:${port}/metrics`)
  const lines = [...(await reply.text()).matchAll(/^markbridge_compare_(\S+) (\S+)$/gm)]
  return new Map(lines.map(([, name = '', value]) => [name, Number(value)]))
}

/** Waits until at most `most` comparisons are left, because they would take the core from the next candidate. */
async function drained(port: number, most: number): Promise<void> {
  const since = performance.now()
  while (performance.now() - since < DRAIN_MS) {
    if (((await comparisons(port)).get('waiting') ?? 0) <= most) return
    await pause(100)
  }
}

/** Returns how the comparisons of a candidate ended. Throws if a mark differs, or if the share of compared exchanges is wrong. */
async function toBalance(name: Name, port: number): Promise<Row> {
  const all = await comparisons(port)
  const sum = (what: string, ...labels: readonly string[]): number =>
    [...all].reduce(
      (total, [key, value]) =>
        key.startsWith(`${what}_total{`) && labels.every((label) => key.includes(label))
          ? total + value
          : total,
      0,
    )
  const wrong = ['differs', 'onlyV2', 'onlyV3'].map((verdict) => sum('records', `verdict="${verdict}"`))
  if (wrong.some((count) => count > 0)) throw new Error(`${name}: ${wrong.join(', ')} marks differ`)
  const isOn = name.endsWith('100 %')
  if (isOn !== sum('offered', 'check="reply"') > 0) throw new Error(`${name}: wrong share of comparisons`)
  const [offered, compared, dropped, skipped] = ['offered', 'compared', 'dropped', 'skipped'].map((what) =>
    sum(what, 'check="reply"'),
  )
  const text = `reply ${offered ?? 0} = ${compared ?? 0} compared, ${dropped ?? 0} dropped, ${skipped ?? 0} skipped`
  const value = isOn ? text : 'nothing compared'
  return { bench: 'compare live, checks', candidate: `V3 ${name}`, value, ratio: '', aim: '', met: undefined }
}

function toRows(load: Load, all: Rounds): Row[] {
  const of = (name: Name, key: keyof Measured): number[] => (all.get(name) ?? []).map((one) => one[key])
  const noise = ratios(of, 'sound 0 % again', 'sound 0 %')
  const isQuiet = [noise.p50Ms, noise.p99Ms].every(({ min, max }) => max / min <= QUIET)
  return names.map((name): Row => {
    const middle = (key: keyof Measured): number => median(of(name, key))
    const times = `p50 ${middle('p50Ms').toFixed(2)} ms, p99 ${middle('p99Ms').toFixed(2)} ms`
    const row = {
      bench: `compare live, ${loads[load]}`,
      candidate: `V3 ${name}`,
      value: `${times}, ${middle('perSecond').toFixed(0)} requests/s, ${middle('cpuMicros').toFixed(0)} us each`,
    }
    if (name === 'sound 0 % again')
      return { ...row, ratio: `noise: ${describe(noise)}`, aim: '', met: undefined }
    if (!name.endsWith('100 %')) return { ...row, ratio: '', aim: '', met: undefined }
    const own = ratios(of, name, name === 'sound 100 %' ? 'sound 0 %' : 'stalled 0 %')
    const isWithin = own.p50Ms.median <= largestOf(noise.p50Ms) && own.p99Ms.median <= largestOf(noise.p99Ms)
    // If the noise is too large, a result within the noise proves nothing.
    const met = isWithin && !isQuiet ? undefined : isWithin
    return { ...row, ratio: `of 0 %: ${describe(own)}`, aim: 'p50, p99 within the noise', met }
  })
}

interface Ratio {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** Returns the largest ratio that may be noise. Either of the two equal adapters may be the divisor. */
const largestOf = ({ min, max }: Ratio): number => Math.max(max, 1 / min)

/** Returns the ratios of one candidate to another, computed within each round. */
function ratios(
  of: (name: Name, key: keyof Measured) => readonly number[],
  name: Name,
  base: Name,
): Readonly<Record<keyof Measured, Ratio>> {
  const ratio = (key: keyof Measured): Ratio => {
    const [values, bases] = [of(name, key), of(base, key)]
    const each = values.map((value, round) => value / (bases[round] ?? Number.NaN))
    return { median: medianRatio(values, bases), min: Math.min(...each), max: Math.max(...each) }
  }
  return {
    p50Ms: ratio('p50Ms'),
    p99Ms: ratio('p99Ms'),
    perSecond: ratio('perSecond'),
    cpuMicros: ratio('cpuMicros'),
  }
}

function describe({ p50Ms, p99Ms, perSecond, cpuMicros }: Readonly<Record<keyof Measured, Ratio>>): string {
  const text = (name: string, { median: middle, min, max }: Ratio): string =>
    `${name} ${middle.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`
  return [text('p50', p50Ms), text('p99', p99Ms), text('requests', perSecond), text('cpu', cpuMicros)].join(
    ', ',
  )
}
