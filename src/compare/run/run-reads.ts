import type { WallClock } from '../../clock.ts'
import { comparePair, describeMark, MAX_PAIR_ROWS, type OwnRules, type RecordDiff } from '../diff/index.ts'
import type { RunDocument } from '../run-document.ts'
import { type Checkpoint, writeCheckpoint } from './checkpoint.ts'
import type { CompareWindowOptions, WindowFailure } from './compare-window.ts'
import { DAY_MS, formatDay } from './days.ts'
import { writeRegistrationQueries } from './registration-query.ts'
import { runComparison, type RunEnd } from './run-comparison.ts'
import { newRunName, type RunFiles } from './run-files.ts'
import { createRunPhase, type RunPhase } from './run-phase.ts'
import type { ComparedSide } from './side.ts'
import { createTally, type RecordGroups, type Tally } from '../tally.ts'
import { parseTallyState } from '../tally-state.ts'
import { firstPosition, planLists, planWindows } from './windows.ts'
import { writeMarkQuery } from './write-filter.ts'

/** One kind of record on both sides. */
export interface SidePair {
  readonly v2: ComparedSide
  readonly v3: ComparedSide
}

/** What a run compares. */
export interface RunSelection {
  /** Null: none is configured. */
  readonly partner: string | null
  readonly fromMs: number
  /** The first moment after the last day. */
  readonly toMs: number
  /** Learners whose records are compared, as lists that fit into a query each; undefined: all. */
  readonly learners: readonly (readonly string[])[] | undefined
  /** True: registrations are compared after the marks. */
  readonly registrations: boolean
  /** True: V2 is read twice. */
  readonly noise: boolean
  /** The partner's own; undefined: none. */
  readonly rules: OwnRules | undefined
}

export interface RunReadsOptions {
  readonly marks: SidePair
  readonly registrations: SidePair
  readonly selection: RunSelection
  /** SHA-256 over the options. */
  readonly digest: string
  readonly sampleKey: string
  readonly files: RunFiles
  /** The run that goes on; undefined: a new one. */
  readonly resumed: Checkpoint | undefined
  readonly clock: WallClock
  /** Time that a change may take to reach the other side, before what differs is asked again. */
  readonly pauseMs: number
  /** Rows of a window at most, and about as many as one is to have. Default 50,000 and 8,000. */
  readonly rows?: { readonly max: number; readonly target: number }
  readonly onProgress: (progress: RunProgress) => void
  /** A window that could not be compared; it is read again at the end of the run. */
  readonly onFailure: (failure: WindowFailure) => void
}

/** How far a run has come. */
export interface RunProgress {
  readonly days: number
  readonly daysDone: number
  /** Compared since the run began, or went on. */
  readonly records: number
}

/** What a run came to. */
export interface RunResult {
  readonly document: RunDocument
  /** Of the file with the document. */
  readonly path: string
  readonly end: RunEnd
  /** Windows that could not be compared in the end. */
  readonly failures: readonly WindowFailure[]
}

/** Two windows of both sides are in memory at a time; the differ takes no more than `max`. */
const ROWS = { max: MAX_PAIR_ROWS, target: 8_000 }

/**
 * Runs a comparison of both services to its end, or until `signal` aborts: windows in turn, a checkpoint after each, the document at
 * the end, whatever the end is. Rejects for files that cannot be written and for faults of the program.
 */
export async function runReads(options: RunReadsOptions, signal: AbortSignal): Promise<RunResult> {
  const { selection, resumed, files, clock } = options
  const { fromMs, toMs, learners, rules } = selection
  const run = resumed?.run ?? newRunName(clock.wallMs())
  const startedAt = resumed?.startedAt ?? formatMoment(clock.wallMs())
  const tally = createTally(rules?.all)
  if (resumed !== undefined) tally.merge(parseTallyState(resumed.tally))
  if (selection.noise) tally.measureNoise()
  const lists = learners?.length ?? 1
  const start = firstPosition(fromMs)
  const marks = createRunPhase(
    tally,
    (row) => groupsOfMark(row),
    resumed?.marks ?? { position: start, failed: [] },
  )
  const documents = createRunPhase(
    tally,
    () => ({ kind: 'registrations' }),
    resumed?.registrations ?? { position: start, failed: [] },
  )
  const plan = planWindows({
    fromMs,
    toMs,
    lists,
    targetRows: (options.rows ?? ROWS).target,
    start: marks.state().position,
  })
  const { digest, sampleKey } = options
  const save = (): Promise<void> =>
    files.writeCheckpoint(
      run,
      writeCheckpoint({
        ...{ run, startedAt, options: digest, sampleKey, tally: tally.state() },
        ...{ marks: marks.state(), registrations: documents.state() },
      }),
    )
  let records = 0
  const report = (): void => {
    const daysDone = plan.daysBefore(marks.state().position)
    options.onProgress({ days: plan.days, daysDone, records })
  }
  const comparison = (phase: RunPhase): Parameters<typeof runComparison>[0] => ({
    ...compareOptions(options, phase === marks),
    plan: phase === marks ? plan : planLists(lists, documents.state().position),
    failed: phase.state().failed,
    onWindow: async (done) => {
      phase.take(done)
      records += done.results.reduce((sum, { rows }) => sum + rows.length, 0)
      await save()
      report()
      for (const { failure } of done.results) if (failure !== undefined) options.onFailure(failure)
    },
  })
  await save()
  report()
  let end = await runComparison(comparison(marks), signal)
  if (end.kind === 'done' && selection.registrations) end = await runComparison(comparison(documents), signal)
  const failures = [...marks.failures(), ...documents.failures()]
  const complete = end.kind === 'done' && failures.length === 0
  const all = withUnknown(tally, [marks, documents], rules)
  const document = all.toDocument({
    ...{ run, kind: 'reads', partner: selection.partner, startedAt, endedAt: formatMoment(clock.wallMs()) },
    ...{ from: formatDay(fromMs), to: formatDay(toMs - DAY_MS), complete },
  })
  const path = await files.writeDocument(run, `${JSON.stringify(document, null, 2)}\n`)
  if (complete) await files.removeCheckpoint(run)
  return { document, path, end, failures }
}

function compareOptions(
  { marks, registrations, selection, clock, pauseMs, rows = ROWS }: RunReadsOptions,
  isMarks: boolean,
): CompareWindowOptions {
  const { learners, noise, rules } = selection
  return {
    ...(isMarks ? marks : registrations),
    ...{ noise, maxRows: rows.max, clock, pauseMs },
    asksAgain: isMarks,
    queriesOf: (window) => {
      const list = learners?.[window.list]
      if (!isMarks) return writeRegistrationQueries(list)
      const query = writeMarkQuery(window, list)
      return { v2: query, v3: query }
    },
    compare: (v2, v3, order) =>
      comparePair({ kind: isMarks ? 'marks' : 'registrations', v2, v3, order, rules }),
  }
}

function groupsOfMark(row: RecordDiff): RecordGroups {
  const { day, codeClass } = describeMark(row)
  return { kind: 'marks', day, codeClass }
}

/** The counts with the records of windows that one side did not answer. */
function withUnknown(done: Tally, phases: readonly RunPhase[], rules: OwnRules | undefined): Tally {
  const all = createTally(rules?.all)
  all.merge(done.state())
  for (const phase of phases) for (const unknown of phase.unknown()) all.merge(unknown)
  return all
}

function formatMoment(ms: number): string {
  return new Date(ms).toISOString()
}
