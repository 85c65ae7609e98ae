import { findPostgres } from '../test/support/postgres/find-postgres.ts'
import { startPostgres } from '../test/support/start-postgres.ts'
import { canPin, type Child, pin, startChild } from './child.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

/** The processor core of adapters, clients and upstream, and the core of PostgreSQL. */
const [SHARED, DATABASE] = [0, 1]
const CLIENTS = 16
const ROUND_MS = 2_000
const STARTS = 2
const ROUNDS = 5
const OF_NONE = 0.45
const MORE_MICROS = 40

const names = ['none', 'PostgreSQL'] as const
type Name = (typeof names)[number]

interface Measured {
  readonly marksPerSecond: number
  /** The processor time of the adapter's process, without PostgreSQL. */
  readonly cpuMicrosPerMark: number
}

/**
 * Compares the marks per second of the adapter with a journal in PostgreSQL, which has its own core, with those of an adapter without a
 * journal. All other processes share the other core. Returns no rows if PostgreSQL cannot be started or cannot be moved to a core.
 */
export async function benchPostgres(): Promise<Row[]> {
  if (!canPin || findPostgres().kind !== 'binaries') {
    process.stderr.write(
      'skipped: this benchmark needs the programs of PostgreSQL, `taskset` and two processor cores\n',
    )
    return []
  }
  const all = new Map<Name, Measured[]>()
  for (let start = 0; start < STARTS; start += 1) {
    for (const [name, measured] of await measureStart()) {
      all.set(name, [...(all.get(name) ?? []), ...measured])
    }
  }
  return toRows(all)
}

/** Starts all processes with a new database, and measures their rounds. */
async function measureStart(): Promise<Map<Name, Measured[]>> {
  const postgres = await startPostgres()
  const pid = postgres.server?.pid()
  const children: Child[] = []
  try {
    if (pid === undefined) throw new Error('PostgreSQL does not run')
    // The main process of PostgreSQL starts the processes of the connections, which inherit its core.
    pin(pid, DATABASE)
    const start = async (script: string, args: readonly (string | number)[]): Promise<Child> => {
      const child = await startChild(script, args, SHARED)
      children.push(child)
      return child
    }
    const upstream = await start('upstream-process.ts', [])
    const sideWith = async (journal: string): Promise<readonly [Child, Child]> => {
      const adapter = await start('adapter-process.ts', [
        `http://127.0.0.1:${upstream.ready['port'] ?? 0}`,
        journal,
      ])
      return [adapter, await start('load-process.ts', [adapter.ready['port'] ?? 0, CLIENTS, ROUND_MS])]
    }
    const sides = {
      none: await sideWith('none'),
      PostgreSQL: await sideWith(await postgres.createDatabase()),
    }
    // These rounds do not count, because V8 still compiles.
    for (const name of names) await measure(sides[name])
    return await interleave(names, ROUNDS, (name) => measure(sides[name]))
  } finally {
    for (const child of children.reverse()) await child.stop()
    await postgres.close()
  }
}

async function measure([adapter, clients]: readonly [Child, Child]): Promise<Measured> {
  const { cpuMs: before = 0 } = await adapter.ask('cpu')
  const { marks = 0, ms = 0 } = await clients.ask('run')
  const { cpuMs: after = 0 } = await adapter.ask('cpu')
  return { marksPerSecond: (marks * 1000) / ms, cpuMicrosPerMark: ((after - before) * 1000) / marks }
}

function toRows(all: ReadonlyMap<Name, readonly Measured[]>): Row[] {
  const of = (name: Name, member: keyof Measured): number[] => (all.get(name) ?? []).map((one) => one[member])
  const noneMicros = of('none', 'cpuMicrosPerMark')
  const more = median(
    of('PostgreSQL', 'cpuMicrosPerMark').map((micros, round) => micros - (noneMicros[round] ?? NaN)),
  )
  const ofNone = medianRatio(of('PostgreSQL', 'marksPerSecond'), of('none', 'marksPerSecond'))
  return names.map((name): Row => {
    const isAim = name === 'PostgreSQL'
    const micros = isAim ? `+${more.toFixed(1)}` : median(noneMicros).toFixed(1)
    return {
      bench: `journal on a core of its own, ${CLIENTS} clients, batches of 30`,
      candidate: name,
      value: `${(median(of(name, 'marksPerSecond')) / 1000).toFixed(1)}k marks/s, ${micros} us a mark`,
      ratio: isAim ? `${ofNone.toFixed(2)} of none` : '',
      aim: isAim ? `>= ${OF_NONE}, <= +${MORE_MICROS} us` : '',
      met: isAim ? ofNone >= OF_NONE && more <= MORE_MICROS : undefined,
    }
  })
}
