import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type Child, startChild } from './child.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

/** The processor core of the measured process, and the core of all other processes. */
const [MEASURED, BESIDE] = [0, 1]
/** Concurrent posts of one batch: the adapter's default for a partner. */
const CONCURRENCY = 16
const ROUND_MS = 1_000
const ROUNDS = 15
const FSYNCS = 50
const OF_NONE = 1.4
const OF_SQLITE = 2

const names = ['30 posts', 'Express before 30 posts', 'bare converter', 'none', 'SQLite'] as const

/**
 * Compares the time of one batch of 30 of a single client, without a journal and with SQLite, with the time of the same 30 posts of
 * undici. Subtracts from the time with SQLite two fsyncs, which every durable batch needs. Two more candidates show what any adapter
 * must add: Express before the same posts, and Express with only the codec.
 */
export async function benchLatency(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-'))
  const upstream = await startChild('upstream-process.ts', [], BESIDE)
  const port = upstream.ready['port'] ?? 0
  const posts = await startChild('poster-process.ts', [port, CONCURRENCY, ROUND_MS], MEASURED)
  const children: Child[] = [upstream, posts]
  const driverOf = async (server: Child): Promise<Child> => {
    const client = await startChild('load-process.ts', [server.ready['port'] ?? 0, 1, ROUND_MS], BESIDE)
    children.push(server, client)
    return client
  }
  const clientOf = async (journal: string): Promise<Child> => {
    const adapter = await startChild('adapter-process.ts', [`http://127.0.0.1:${port}`, journal], MEASURED)
    adapter.pinThreads('markbridge-journal', BESIDE)
    return driverOf(adapter)
  }
  const converterOf = async (...kind: string[]): Promise<Child> =>
    driverOf(await startChild('converter-process.ts', [port, CONCURRENCY, ...kind], MEASURED))
  try {
    const [none, sqlite] = [await clientOf('none'), await clientOf(`sqlite:${join(folder, 'journal.db')}`)]
    const drivers = {
      '30 posts': posts,
      'Express before 30 posts': await converterOf('posts'),
      'bare converter': await converterOf(),
      none,
      SQLite: sqlite,
    }
    const fsyncs: number[] = []
    const all = await interleave(names, ROUNDS, async (name) => {
      fsyncs.push(fsyncMs(folder))
      const { batchMs = Number.NaN } = await drivers[name].ask(name === '30 posts' ? 'batches' : 'run')
      return batchMs
    })
    return toRows(all, 2 * median(fsyncs))
  } finally {
    for (const child of children.reverse()) await child.stop()
    rmSync(folder, { recursive: true })
  }
}

/** Returns the median time of an fsync of one page in the folder of the journal, in ms. */
function fsyncMs(folder: string): number {
  const file = openSync(join(folder, 'fsync'), 'w')
  const page = Buffer.alloc(4_096, 1)
  const times = Array.from({ length: FSYNCS }, () => {
    writeSync(file, page)
    const start = performance.now()
    fdatasyncSync(file)
    return performance.now() - start
  })
  closeSync(file)
  return median(times)
}

function toRows(all: ReadonlyMap<(typeof names)[number], readonly number[]>, twoFsyncsMs: number): Row[] {
  const of = (name: (typeof names)[number]): readonly number[] => all.get(name) ?? []
  const posts = of('30 posts')
  return names.map((name): Row => {
    const value = `${median(of(name)).toFixed(2)} ms`
    const row = { bench: '1 client, one batch of 30, p50', candidate: name }
    const of30Posts = medianRatio(of(name), posts).toFixed(2)
    if (name !== 'none' && name !== 'SQLite')
      return { ...row, value, ratio: of30Posts, aim: '', met: undefined }
    const isSqlite = name === 'SQLite'
    const ratio = medianRatio(isSqlite ? of(name).map((ms) => ms - twoFsyncsMs) : of(name), posts)
    const aim = isSqlite ? OF_SQLITE : OF_NONE
    const what = isSqlite ? `without two fsyncs (${twoFsyncsMs.toFixed(2)} ms) ` : ''
    const beside = isSqlite
      ? ''
      : `, ${medianRatio(of(name), of('bare converter')).toFixed(2)} of the converter`
    return {
      ...row,
      value,
      ratio: `${what}${ratio.toFixed(2)}${beside}`,
      aim: `<= ${aim}`,
      met: ratio <= aim,
    }
  })
}
