import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type Child, startChild } from './child.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

/** The core of the process that is measured, and that of all others. */
const [MEASURED, BESIDE] = [0, 1]
const CLIENTS = 16
const REQUESTS_AT_A_TIME = 256
const ROUND_MS = 2_000
/** The processes are started anew so often: how fast the peer becomes is decided as it starts. */
const STARTS = 3
const ROUNDS = 3
const OF_UNDICI = 0.5
const OF_NONE = 0.75

/** A process that is measured, and the one that drives it. */
interface Side {
  readonly worker: Child
  readonly driver: Child
}

interface Measured {
  readonly marksPerSecond: number
  /** Processor time of the measured process, the journal's thread included. */
  readonly cpuMicrosPerMark: number
}

/**
 * Marks per second through the adapter with each kind of journal, each write durable before it is sent and each outcome before
 * it is told, against the same posts without an adapter. As in the bench of the adapter alone, adapters and peer have one core
 * in turns, clients and upstream the other; so has the thread that writes SQLite.
 */
export async function benchJournal(): Promise<Row[]> {
  const all = new Map<string, Measured[]>()
  for (let start = 0; start < STARTS; start += 1) {
    for (const [name, measured] of await measureStart()) {
      all.set(name, [...(all.get(name) ?? []), ...measured])
    }
  }
  return toRows(all)
}

/** Measures the processes of one start. */
async function measureStart(): Promise<Map<string, Measured[]>> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-'))
  const children: Child[] = []
  const start = async (script: string, args: readonly (string | number)[], core: number): Promise<Child> => {
    const child = await startChild(script, args, core)
    children.push(child)
    return child
  }
  try {
    const upstream = await start('upstream-process.ts', [], BESIDE)
    const port = upstream.ready['port'] ?? 0
    const adapterWith = async (journal: string): Promise<Side> => {
      const worker = await start('adapter-process.ts', [`http://127.0.0.1:${port}`, journal], MEASURED)
      worker.pinThreads('markbridge-journal', BESIDE)
      const driver = await start('load-process.ts', [worker.ready['port'] ?? 0, CLIENTS, ROUND_MS], BESIDE)
      return { worker, driver }
    }
    const poster = await start('poster-process.ts', [port, REQUESTS_AT_A_TIME, ROUND_MS], MEASURED)
    const sides = new Map<string, Side>([['undici', { worker: poster, driver: poster }]])
    sides.set('none', await adapterWith('none'))
    sides.set('SQLite', await adapterWith(`sqlite:${join(folder, 'journal.db')}`))
    return await interleave([...sides.keys()], ROUNDS, (name) => measure(sides.get(name)))
  } finally {
    for (const child of children.reverse()) await child.stop()
    rmSync(folder, { recursive: true })
  }
}

async function measure(side: Side | undefined): Promise<Measured> {
  if (side === undefined) throw new Error('no such candidate')
  const { cpuMs: before = 0 } = await side.worker.ask('cpu')
  const { marks = 0, ms = 0 } = await side.driver.ask('run')
  const { cpuMs: after = 0 } = await side.worker.ask('cpu')
  return { marksPerSecond: (marks * 1000) / ms, cpuMicrosPerMark: ((after - before) * 1000) / marks }
}

function toRows(measured: ReadonlyMap<string, readonly Measured[]>): Row[] {
  const rates = (name: string): number[] => (measured.get(name) ?? []).map((one) => one.marksPerSecond)
  const cpu = (name: string): number => median((measured.get(name) ?? []).map((one) => one.cpuMicrosPerMark))
  return [...measured.keys()].map((name) => {
    const ofUndici = medianRatio(rates(name), rates('undici'))
    const ofNone = medianRatio(rates(name), rates('none'))
    const costs = name === 'undici' ? cpu(name) : cpu(name) - (name === 'none' ? 0 : cpu('none'))
    const isAim = name === 'SQLite'
    return {
      bench: `journal, ${CLIENTS} clients, batches of 30`,
      candidate: name,
      value:
        `${(median(rates(name)) / 1000).toFixed(1)}k marks/s, ` +
        (name === 'undici' || name === 'none'
          ? `${costs.toFixed(1)} us a mark`
          : `+${costs.toFixed(1)} us a mark`),
      ratio: name === 'undici' ? '' : `${ofUndici.toFixed(2)} of undici, ${ofNone.toFixed(2)} of none`,
      aim: isAim ? `>= ${OF_UNDICI}, >= ${OF_NONE}` : '',
      met: isAim ? ofUndici >= OF_UNDICI && ofNone >= OF_NONE : undefined,
    }
  })
}
