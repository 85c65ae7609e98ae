import { type Child, startChild } from './child.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

const CLIENTS = 16
/** What the adapter may have under way for 16 clients (16 records each): the peer gets the same. */
const REQUESTS_AT_A_TIME = 256
const ROUND_MS = 2_000
/** The processes are started anew so often: how fast the peer becomes (17 or 24 us a mark) is decided as it starts. */
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
  /** The adapters, each with its clients: `v3.writeMode: single`, and `batch` in each format. */
  readonly adapters: readonly Driven[]
  readonly poster: Child
  /** With what src/cli/main.ts tells V8. */
  readonly tuned: Child
}

interface Measured {
  readonly marksPerSecond: number
  readonly cpuMicrosPerMark: number
  /** The share of its core that the measured process got, 0 to 1. */
  readonly busy: number
  /** How busy the upstream was, 0 to 1: near 1 it would be the one that is measured. */
  readonly upstreamBusy: number
}

/** Below this share of its core a process was not held up by its own work but by other programs of the machine. */
const BUSY = 0.85
const TRIES = 5

/**
 * Marks per second through the adapter against the same posts without it. The adapter and its peer have one core in turns,
 * clients and upstream the other.
 */
export async function benchAdapter(): Promise<Row[]> {
  const all = new Map<Name, Measured[]>(names.map((name) => [name, []]))
  for (let start = 0; start < STARTS; start += 1) {
    for (const [name, measured] of await measureStart()) all.get(name)?.push(...measured)
  }
  return toRows(all)
}

/** Measures the processes of one start. */
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

/** Measures one round; again when other programs took the core meanwhile. */
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
