import type { WallClock } from '../../clock.ts'
import type { RunDocument } from '../run-document.ts'
import { type Counted, createTally, type RecordGroups, type RunHeader, toDocument } from '../tally.ts'
import type { Comparison } from '../verdict.ts'
import type { WindowFailure } from './compare-window.ts'
import { type Checkpoint, newRunName, type RunFiles } from './run-files.ts'

/** The results of one window of days or of one recorded exchange. */
export interface RunStep {
  readonly records: readonly (readonly [comparison: Comparison, groups: RecordGroups])[]
  /** Comparisons of two reads of the same records from V2. Default: none. */
  readonly noise?: Iterable<Comparison>
  readonly askedAgain?: number
  /** Records that were offered but not compared. */
  readonly skipped?: number
}

/**
 * How a source ended: `done` after its last window, `stopped` when its signal aborted, `failing` after too many failed windows in a row, or
 * `refused` after an error that every window would get.
 */
export interface SourceEnd {
  readonly kind: 'done' | 'stopped' | 'failing' | 'refused'
  /** Windows that could not be compared. If the source was `refused`, the window that caused it comes first. */
  readonly failures: readonly WindowFailure[]
  /** Counts that belong to the document but not to a checkpoint, since their windows are read again. */
  readonly remainingCounts: readonly Counted[]
}

/** Compares answers of V2 and V3 step by step: windows of days of both services, or recorded exchanges. */
export interface RunSource {
  /** Rejects only if the program fails. */
  steps(signal: AbortSignal): AsyncGenerator<RunStep, SourceEnd>
  /** Returns the position after the last step, or is `undefined` if the source cannot be resumed. */
  position?(): Pick<Checkpoint, 'position' | 'failed'>
  progress(): { readonly done: number; readonly total: number }
}

export interface RunOptions {
  readonly source: RunSource
  readonly header: Pick<RunHeader, 'kind' | 'partner' | 'services' | 'from' | 'to' | 'noise' | 'rules'>
  readonly files: RunFiles
  readonly clock: WallClock
  /** The checkpoint data, or `undefined` if the source cannot be resumed. `resumed` is the checkpoint that the run continues from. */
  readonly checkpoint?: Pick<Checkpoint, 'options'> & { readonly resumed: Checkpoint | undefined }
  /** Called at the start and after each step. `records` counts the records compared since the run began or was resumed. */
  readonly onProgress: (progress: ReturnType<RunSource['progress']> & { readonly records: number }) => void
}

export interface RunResult extends Pick<SourceEnd, 'kind' | 'failures'> {
  readonly document: RunDocument
  readonly path: string
}

/** Runs a comparison to its end or until `signal` aborts, and always writes the document. Rejects if files cannot be written. */
export async function runComparison(options: RunOptions, signal: AbortSignal): Promise<RunResult> {
  const { source, header, files, clock, checkpoint, onProgress } = options
  const resumed = checkpoint?.resumed
  const run = resumed?.run ?? newRunName(clock.wallMs())
  const startedAt = resumed?.startedAt ?? formatMoment(clock.wallMs())
  const began = startedAt.slice(0, 10)
  const tally = createTally()
  tally.merge(resumed?.counts ?? [])
  let records = 0
  const save = async (): Promise<void> => {
    const place = source.position?.()
    const progress = source.progress()
    if (place !== undefined && checkpoint !== undefined)
      await files.writeCheckpoint({
        ...{
          run,
          startedAt,
          partner: header.partner,
          from: header.from ?? began,
          to: header.to ?? began,
          progress,
        },
        ...{ options: checkpoint.options, ...place, counts: tally.counts() },
      })
    onProgress({ ...progress, records })
  }
  await save()
  const steps = source.steps(signal)
  let step = await steps.next()
  while (step.done !== true) {
    const { records: compared, noise = [], askedAgain = 0, skipped = 0 } = step.value
    for (const [comparison, groups] of compared) tally.add(comparison, groups)
    for (const comparison of noise) tally.addNoise(comparison)
    tally.count('askedAgain', askedAgain)
    tally.count('skipped', skipped)
    records += compared.length
    await save()
    step = await steps.next()
  }
  const { kind, failures, remainingCounts: left } = step.value
  const complete = kind === 'done' && failures.length === 0
  const endedAt = formatMoment(clock.wallMs())
  tally.merge(left)
  const document = toDocument({ ...header, run, startedAt, endedAt, complete }, tally.counts())
  const path = await files.writeDocument(run, `${JSON.stringify(document, null, 2)}\n`)
  if (complete) await files.removeCheckpoint(run)
  return { document, path, kind, failures }
}

const formatMoment = (ms: number): string => new Date(ms).toISOString()
