import type { WallClock } from '../../clock.ts'
import type { RunDocument } from '../run-document.ts'
import { type Counted, createTally, type RecordGroups, type RunHeader, toDocument } from '../tally.ts'
import type { Comparison } from '../verdict.ts'
import type { WindowFailure } from './compare-window.ts'
import { newRunName, writeRun } from './run-files.ts'

/** The results of one window of days or of one recorded exchange. */
export interface RunStep {
  readonly records: readonly (readonly [comparison: Comparison, groups: RecordGroups])[]
  /** Comparisons of two reads of the same records from V2. Default: none. */
  readonly noise?: Iterable<Comparison>
  readonly askedAgain?: number
  readonly skipped?: number
}

/**
 * How a source ended: `done` after its last window, `stopped` when its signal aborted, `failing` after too many failed windows in a row, or
 * `refused` after an error that would recur in every window.
 */
export interface SourceEnd {
  readonly kind: 'done' | 'stopped' | 'failing' | 'refused'
  /** Windows that could not be compared. If the source was `refused`, the window that caused it comes first. */
  readonly failures: readonly WindowFailure[]
  /** The unknown records of the windows that could not be compared. */
  readonly remainingCounts: readonly Counted[]
}

/** A source of comparisons between V2 and V3. Each step compares one window of days of both services, or one recorded exchange. */
export interface RunSource {
  /** Yields the results step by step. An error of a service is part of the result and not a rejection. */
  steps(signal: AbortSignal): AsyncGenerator<RunStep, SourceEnd>
  progress(): { readonly done: number; readonly total: number }
}

export interface RunOptions {
  readonly source: RunSource
  readonly header: Pick<RunHeader, 'kind' | 'partner' | 'services' | 'from' | 'to' | 'noise' | 'rules'>
  readonly folder: string
  readonly clock: WallClock
  /** Called at the start and after each step. `records` is the number of records compared so far. */
  readonly onProgress: (progress: ReturnType<RunSource['progress']> & { readonly records: number }) => void
}

export interface RunResult extends Pick<SourceEnd, 'kind' | 'failures'> {
  readonly document: RunDocument
  readonly path: string
}

/**
 * Runs a comparison to its end, or until `signal` aborts, and writes the document in both cases. Rejects if the document cannot be written.
 */
export async function runComparison(options: RunOptions, signal: AbortSignal): Promise<RunResult> {
  const { source, header, folder, clock, onProgress } = options
  const run = newRunName(clock.wallMs())
  const startedAt = formatMoment(clock.wallMs())
  const tally = createTally()
  let records = 0
  const report = (): void => onProgress({ ...source.progress(), records })
  report()
  const steps = source.steps(signal)
  let step = await steps.next()
  while (step.done !== true) {
    const { records: compared, noise = [], askedAgain = 0, skipped = 0 } = step.value
    for (const [comparison, groups] of compared) tally.add(comparison, groups)
    for (const comparison of noise) tally.addNoise(comparison)
    tally.count('askedAgain', askedAgain)
    tally.count('skipped', skipped)
    records += compared.length
    report()
    step = await steps.next()
  }
  const { kind, failures, remainingCounts: left } = step.value
  const complete = kind === 'done' && failures.length === 0
  const endedAt = formatMoment(clock.wallMs())
  tally.merge(left)
  const document = toDocument({ ...header, run, startedAt, endedAt, complete }, tally.counts())
  const path = await writeRun(folder, run, `${JSON.stringify(document, null, 2)}\n`)
  return { document, path, kind, failures }
}

const formatMoment = (ms: number): string => new Date(ms).toISOString()
