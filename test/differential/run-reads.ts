import fc from 'fast-check'

import type { SandboxOptions } from '../../src/sandbox/index.ts'
import { exceptions, type Pair } from './exceptions.ts'
import type { Pages } from './exchange.ts'
import { type Read, type Reads, targetOf } from './grammar/read.ts'
import { createReads } from './grammar/reads.ts'
import { judge } from './judge.ts'
import { type Faces, startFaces } from './start-faces.ts'

export interface ReadsOptions {
  readonly reads: number
  readonly seed: number
  readonly school?: SandboxOptions
  /** The maximum number of differences that are shrunk to small reads. The default is 5. */
  readonly shrink?: number
}

/** A read that the adapter answers differently from V2, with the replies after the intended differences are removed. */
export interface Difference extends Pair {
  /** The index of the generated read, from 0. */
  readonly index: number
  readonly read: string
}

/** The counts of a run. `reads` is the sum of `equal`, `excepted` and `different`. */
export interface ReadsReport {
  readonly reads: number
  readonly equal: number
  readonly excepted: number
  readonly different: number
  /** The number of generated reads that needed an exception, by the name of the exception. */
  readonly exceptions: Readonly<Record<string, number>>
  /** The names of the exceptions whose example no longer shows the difference. */
  readonly stale: readonly string[]
  /** The number of replies of V2 by kind: `records`, `no records`, `pages`, or a status such as `400`. */
  readonly answers: Readonly<Record<string, number>>
  readonly differences: readonly Difference[]
}

/**
 * Sends generated reads to the V2 interface of the sandbox, and to the adapter in front of its V3 interface, and compares the replies.
 */
export async function runReads({ reads, seed, school, shrink = 5 }: ReadsOptions): Promise<ReadsReport> {
  const faces = await startFaces(school)
  const count = { equal: 0, excepted: 0, different: 0 }
  const hits: Record<string, number> = {}
  const answers: Record<string, number> = {}
  const differences: Difference[] = []
  try {
    const stale = await findStale(faces)
    const generated = createReads(faces.samples)
    for (const [index, read] of fc.sample(generated, { seed, numRuns: reads }).entries()) {
      const pair = await faces.ask(read)
      const verdict = judge(pair, read)
      count[verdict.kind] += 1
      add(answers, describeAnswer(pair.legacy))
      if (verdict.kind === 'excepted') for (const { name } of verdict.by) add(hits, name)
      if (verdict.kind !== 'different') continue
      const small = differences.length < shrink ? await smallest(faces, generated, seed, index) : read
      const again = small === read ? verdict : judge(await faces.ask(small), small)
      differences.push({
        index,
        read: describeRead(small),
        ...(again.kind === 'different' ? again.rest : pair),
      })
    }
    return { reads, ...count, exceptions: hits, stale, answers, differences }
  } finally {
    await faces.close()
  }
}

async function findStale({ ask, samples }: Faces): Promise<string[]> {
  const stale: string[] = []
  for (const { name, example } of exceptions) {
    const usual: Read = { method: 'GET', path: '/V2/Attendance/AttendanceRecords', options: [], headers: {} }
    const read = { ...usual, ...example(samples) }
    const verdict = judge(await ask(read), read)
    if (verdict.kind !== 'excepted' || verdict.by.every((exception) => exception.name !== name))
      stale.push(name)
  }
  return stale
}

/** Shrinks a generated read while the replies still differ. */
async function smallest(faces: Faces, generated: Reads, seed: number, index: number): Promise<Read> {
  let found: Read | undefined
  const property = fc.asyncProperty(generated, async (read) => {
    if (judge(await faces.ask(read), read).kind !== 'different') return true
    found = read
    return false
  })
  await fc.check(property, { seed, path: String(index), interruptAfterTimeLimit: 10_000 })
  if (found === undefined) throw new RangeError('the same read no longer shows a difference')
  return found
}

function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

function describeAnswer(pages: Pages): string {
  const [first] = pages
  if (first?.status !== 200) return String(first?.status)
  if (pages.length > 1) return 'pages'
  return first.body.includes('"value":[]') ? 'no records' : 'records'
}

function describeRead(read: Read): string {
  const headers = Object.entries(read.headers).map(([name, value]) => `, ${name}: ${value}`)
  return `${read.method} ${targetOf(read)}${headers.join('')}`
}
