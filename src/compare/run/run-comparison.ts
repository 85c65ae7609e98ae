import type { WallClock } from '../../clock.ts'
import type { RunDocument } from '../run-document.ts'
import { type Counted, createTally, type RecordGroups, type RunHeader, toDocument } from '../tally.ts'
import type { Comparison } from '../verdict.ts'
import type { WindowFailure } from './compare-window.ts'
import { type Checkpoint, newRunName, type RunFiles } from './run-files.ts'

/** What a source has compared in one step: the pairs of a window of days, or of a recorded exchange. */
export interface RunStep {
  readonly records: readonly (readonly [comparison: Comparison, groups: RecordGroups])[]
  /** Records as V2 gave them twice; default: none. */
  readonly noise?: Iterable<Comparison>
  readonly askedAgain?: number
  /** Records that were offered and not asked for. */
  readonly skipped?: number
}

/** How a source ended. `stopped`: by its signal. `failing`: too many windows in a row could not be read. `refused`: every further window would be. */
export interface SourceEnd {
  readonly kind: 'done' | 'stopped' | 'failing' | 'refused'
  /** Windows that could not be compared in the end; of `refused` the one that was, first. */
  readonly failures: readonly WindowFailure[]
  /** Counts that belong to the document and to no checkpoint: those of windows that are read again. */
  readonly left: readonly Counted[]
}

/** Gives pairs of answers of V2 and V3, compared: windows of days of both services, or recorded exchanges. */
export interface RunSource {
  /** Rejects for faults of the program only. */
  steps(signal: AbortSignal): AsyncGenerator<RunStep, SourceEnd>
  /** Where the source goes on after the last step; undefined: it cannot. */
  position?(): Pick<Checkpoint, 'position' | 'failed'>
  /** Days or exchanges. */
  progress(): { readonly done: number; readonly total: number }
}

export interface RunOptions {
  readonly source: RunSource
  readonly header: Pick<RunHeader, 'kind' | 'partner' | 'services' | 'from' | 'to' | 'noise' | 'rules'>
  readonly files: RunFiles
  readonly clock: WallClock
  /** What a checkpoint says besides; `resumed`: the run that goes on. Of a source that cannot go on undefined. */
  readonly checkpoint?: Pick<Checkpoint, 'options'> & { readonly resumed: Checkpoint | undefined }
  /** Called at first and after each step; `records`: compared since the run began, or went on. */
  readonly onProgress: (progress: ReturnType<RunSource['progress']> & { readonly records: number }) => void
}

/** What a run came to. */
export interface RunResult extends Pick<SourceEnd, 'kind' | 'failures'> {
  readonly document: RunDocument
  /** Of the file with the document. */
  readonly path: string
}

/**
 * Runs a comparison to its end, or until `signal` aborts: step after step, a checkpoint after each, the document at the end, whatever
 * the end is. Rejects for files that cannot be written and for faults of the program.
 */
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
  const { kind, failures, left } = step.value
  const complete = kind === 'done' && failures.length === 0
  const endedAt = formatMoment(clock.wallMs())
  tally.merge(left)
  const document = toDocument({ ...header, run, startedAt, endedAt, complete }, tally.counts())
  const path = await files.writeDocument(run, `${JSON.stringify(document, null, 2)}\n`)
  if (complete) await files.removeCheckpoint(run)
  return { document, path, kind, failures }
}

const formatMoment = (ms: number): string => new Date(ms).toISOString()
