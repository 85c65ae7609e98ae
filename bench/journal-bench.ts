import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type Child, startChild } from './child.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

/** The processor core of the measured process, and the core of all other processes. */
const [MEASURED, BESIDE] = [0, 1]
const CLIENTS = 16
const REQUESTS_AT_A_TIME = 256
const ROUND_MS = 2_000
/** Number of starts of all processes, because the speed of the peer differs from start to start. */
const STARTS = 3
const ROUNDS = 3
const OF_UNDICI = 0.5
const OF_NONE = 0.75

/** A measured process, and the process that sends it requests. */
interface Side {
  readonly worker: Child
  readonly driver: Child
}

interface Measured {
  readonly marksPerSecond: number
  /** The processor time of the measured process, including the thread of the journal. */
  readonly cpuMicrosPerMark: number
}

/**
 * Compares the marks per second of the adapter, without a journal and with SQLite, with those of a process that posts the same bodies.
 * With SQLite each write is durable before it is sent, and each outcome is durable before it is reported. The adapters and the peer take
 * turns on one core. The clients, the upstream and the thread that writes SQLite share the other core.
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

/** Starts all processes, and measures their rounds. */
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
