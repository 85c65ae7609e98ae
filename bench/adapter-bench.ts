import { type Child, startChild } from './child.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

const CLIENTS = 16
/** Concurrent requests of the peer: as many as the adapter sends for 16 clients with 16 records each. */
const REQUESTS_AT_A_TIME = 256
const ROUND_MS = 2_000
/** Number of starts of all processes, because the peer takes 17 us a mark after some starts and 24 us after others. */
const STARTS = 3
const ROUNDS = 5
const AIM = 0.6

const names = [
  'adapter',
  'adapter, multipart $batch',
  'adapter, JSON $batch',
  'undici',
  'undici, tuned',
] as const
type Name = (typeof names)[number]

interface Driven {
  readonly adapter: Child
  readonly load: Child
}

interface Sides {
  readonly upstream: Child
  /** An adapter with `v3.writeMode: single` and one with `batch` for each format, each with its own clients. */
  readonly adapters: readonly Driven[]
  readonly poster: Child
  /** The poster with a V8 option that src/cli/main.ts also sets. */
  readonly tuned: Child
}

interface Measured {
  readonly marksPerSecond: number
  readonly cpuMicrosPerMark: number
  /** The share of the round, 0 to 1, in which the measured process used its core. */
  readonly busy: number
  /** The same share for the upstream. Near 1, the upstream limits the rate, and the round measures the upstream. */
  readonly upstreamBusy: number
}

/** The smallest valid value of `busy`. In a round with a smaller value other programs on the machine slowed the measured process down. */
const BUSY = 0.85
const TRIES = 5

/**
 * Compares the marks per second of the adapter with those of a process that posts the same bodies directly. The adapter and the
 * peer take turns on one core. The clients and the upstream share the other core.
 */
export async function benchAdapter(): Promise<Row[]> {
  const all = new Map<Name, Measured[]>(names.map((name) => [name, []]))
  for (let start = 0; start < STARTS; start += 1) {
    for (const [name, measured] of await measureStart()) all.get(name)?.push(...measured)
  }
  return toRows(all)
}

/** Starts all processes, and measures their rounds. */
async function measureStart(): Promise<Map<Name, Measured[]>> {
  const upstream = await startChild('upstream-process.ts', [], 1)
  const port = upstream.ready['port'] ?? 0
  const adapters: Driven[] = []
  for (const flags of [[], ['--batch=multipart'], ['--batch=json']]) {
    const adapter = await startChild('adapter-process.ts', [`http://127.0.0.1:${port}`, ...flags], 0)
    const load = await startChild('load-process.ts', [adapter.ready['port'] ?? 0, CLIENTS, ROUND_MS], 1)
    adapters.push({ adapter, load })
  }
  const poster = await startChild('poster-process.ts', [port, REQUESTS_AT_A_TIME, ROUND_MS], 0)
  const tuned = await startChild('poster-process.ts', [port, REQUESTS_AT_A_TIME, ROUND_MS, 'tuned'], 0)
  const sides = { upstream, adapters, poster, tuned }
  try {
    return await interleave(names, ROUNDS, (name) => measure(sides, name))
  } finally {
    const driven = adapters.flatMap(({ adapter, load }) => [adapter, load])
    await Promise.all([upstream, poster, tuned, ...driven].map((child) => child.stop()))
  }
}

/** Measures one round. Repeats the round if other programs took the core, and returns the least disturbed measurement. */
async function measure(sides: Sides, name: Name): Promise<Measured> {
  let best = await measureOnce(sides, name)
  for (let tries = 1; tries < TRIES && best.busy < BUSY; tries += 1) {
    const next = await measureOnce(sides, name)
    if (next.busy > best.busy) best = next
  }
  return best
}

async function measureOnce(sides: Sides, name: Name): Promise<Measured> {
  const poster = name === 'undici' ? sides.poster : sides.tuned
  const driven = sides.adapters[names.indexOf(name)]
  const [driver, worker] = driven === undefined ? [poster, poster] : [driven.load, driven.adapter]
  const upstreamBefore = await sides.upstream.ask('count')
  const before = await worker.ask('cpu')
  const { marks = 0, ms = 0 } = await driver.ask('run')
  const after = await worker.ask('cpu')
  const upstreamAfter = await sides.upstream.ask('count')
  const posts = difference(upstreamAfter, upstreamBefore, 'posts')
  if (posts !== marks) throw new Error(`${name}: ${marks} marks were answered, the upstream got ${posts}`)
  const cpu = difference(after, before, 'cpuMs')
  return {
    marksPerSecond: (marks * 1000) / ms,
    cpuMicrosPerMark: (cpu * 1000) / marks,
    busy: cpu / ms,
    upstreamBusy: difference(upstreamAfter, upstreamBefore, 'cpuMs') / ms,
  }
}

function difference(
  after: Readonly<Record<string, number>>,
  before: Readonly<Record<string, number>>,
  name: string,
): number {
  return (after[name] ?? Number.NaN) - (before[name] ?? Number.NaN)
}

function toRows(all: ReadonlyMap<Name, readonly Measured[]>): Row[] {
  const of = (name: Name): readonly Measured[] => all.get(name) ?? []
  const rates = names.map((name): Row => {
    const ratio = medianRatio(of('adapter').map(rate), of(name).map(rate))
    const isAim = name === 'undici'
    return {
      bench: `${CLIENTS} clients, batches of 30`,
      candidate: name,
      value: `${(median(of(name).map(rate)) / 1000).toFixed(1)}k marks/s`,
      ratio: name === 'adapter' ? '' : `adapter ${ratio.toFixed(2)} of it`,
      aim: isAim ? `>= ${AIM}` : '',
      met: isAim ? ratio >= AIM : undefined,
    }
  })
  const costs = names.map((name): Row => {
    const ratio = medianRatio(of(name).map(cpu), of('adapter').map(cpu))
    return {
      bench: 'processor time for a mark',
      candidate: name,
      value:
        `${median(of(name).map(cpu)).toFixed(1)} us, its core ${percent(of(name), 'busy')} busy, ` +
        `upstream ${percent(of(name), 'upstreamBusy')}`,
      ratio: name === 'adapter' ? '' : `${ratio.toFixed(2)} of the adapter's`,
      aim: '',
      met: undefined,
    }
  })
  return [...rates, ...costs]
}

function rate(measured: Measured): number {
  return measured.marksPerSecond
}

function cpu(measured: Measured): number {
  return measured.cpuMicrosPerMark
}

function percent(measured: readonly Measured[], share: 'busy' | 'upstreamBusy'): string {
  return `${(100 * median(measured.map((one) => one[share]))).toFixed(0)} %`
}
