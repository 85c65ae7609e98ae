import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import * as z from 'zod'

import { onCore, startChild } from './child.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

const ROUNDS = 2
const MIB = 1_048_576
const AIM_RATIO = 0.5
const AIM_MIB = 250
/** The three years that are compared. They contain 681,650 of the 937,448 marks of the school. */
const [FROM, TO] = ['2023-06-12', '2026-06-10']
const document = z.object({ compared: z.number(), verdicts: z.object({ same: z.number() }) })

const names = ['compare run', 'undici and JSON.parse'] as const

/** Compares `compare run` over three years of the school with a process that only reads and parses the same pages. */
export async function benchCompareRun(): Promise<Row[]> {
  const upstream = await startChild('compare-sandbox-process.ts', [], 1)
  const { port = 0, v2Port = 0 } = upstream.ready
  const peer = await startChild('compare-peer-process.ts', [v2Port, port, FROM, TO], 0)
  const peaks: number[] = []
  const counts = new Set<number>()
  try {
    const rates = await interleave(names, ROUNDS, async (name) => {
      const startedMs = performance.now()
      if (name === 'compare run') {
        const { compared, peakBytes } = await compare(v2Port, port)
        peaks.push(peakBytes)
        counts.add(compared)
        return (compared / (performance.now() - startedMs)) * 1_000
      }
      const { v2 = 0, v3 = 0, ms = Number.NaN } = await peer.ask('read')
      counts.add(v2).add(v3)
      return (v2 / ms) * 1_000
    })
    if (counts.size !== 1 || counts.has(0)) throw new Error(`marks found: ${[...counts].join(', ')}`)
    const [own = [], other = []] = names.map((name) => rates.get(name))
    const ratio = medianRatio(own, other)
    const peak = Math.max(...peaks)
    const bench = `compare ${[...counts].join()} marks of both faces`
    return [
      {
        bench,
        candidate: names[1],
        value: `${median(other).toFixed(0)} marks/s`,
        ratio: '',
        aim: '',
        met: undefined,
      },
      {
        ...{ bench, candidate: names[0], value: `${median(own).toFixed(0)} marks/s` },
        ...{ ratio: `${ratio.toFixed(2)} of it`, aim: `>= ${AIM_RATIO}`, met: ratio >= AIM_RATIO },
      },
      {
        ...{
          bench: `${bench}: memory`,
          candidate: names[0],
          value: `peak ${(peak / MIB).toFixed(0)} MiB in all`,
        },
        ...{ ratio: '', aim: `< ${AIM_MIB} MiB`, met: peak < AIM_MIB * MIB },
      },
    ]
  } finally {
    await Promise.all([peer.stop(), upstream.stop()])
  }
}

/** Runs the built command, from the start of its process to its end. Throws if the run finds a difference. */
async function compare(v2Port: number, v3Port: number): Promise<{ compared: number; peakBytes: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-'))
  const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
  const command = [
    ...[process.execPath, '--max-semi-space-size=16', main, 'compare', 'run', '--json', '--dir', folder],
    ...[
      '--v2',
      `http://127.0.0.1:${v2Port}`,
      '--v3',
      `http://127.0.0.1:${v3Port}`,
      '--since',
      FROM,
      '--until',
      TO,
    ],
  ]
  const [file = '', ...args] = onCore(command, 0)
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  let peakBytes = Number.NaN
  const watch = setInterval(() => {
    peakBytes = peakOf(child.pid ?? 0) ?? peakBytes
  }, 50)
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [status] = (await once(child, 'close')) as [number | null]
  clearInterval(watch)
  rmSync(folder, { recursive: true })
  const text = Buffer.concat(chunks).toString()
  if (status !== 0) throw new Error(`compare run ended with ${String(status)}: ${text.slice(0, 500)}`)
  const { compared, verdicts } = document.parse(JSON.parse(text))
  if (verdicts.same !== compared) throw new Error(`${compared - verdicts.same} records are not the same`)
  return { compared, peakBytes }
}

/** Returns the largest resident size of a process so far in bytes, or `undefined` if the process has ended. */
function peakOf(pid: number): number | undefined {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kib === undefined ? undefined : Number(kib) * 1024
  } catch {
    return undefined
  }
}
