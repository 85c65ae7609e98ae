import type { RunDocument } from '../../../src/compare/run-document.ts'
import {
  dayOf,
  differenceOf,
  drawDifferences,
  type DrawnKind,
  type ListedDifference,
} from './differ-faces.ts'
import type { DrawnRun } from './draw-run.ts'
import { drawRun } from './draw-run.ts'
import type { Mistakes } from './expected-document.ts'
import { expectedCounts, judgeDocument } from './expected-document.ts'
import type { PreparedSchool } from './prepare-school.ts'
import { prepareSchool } from './prepare-school.ts'

/** Compares both interfaces of a school as a run specifies. */
export type CompareFaces = (
  school: Pick<PreparedSchool, 'v2Url' | 'v3Url'>,
  run: DrawnRun,
  learners: readonly string[] | undefined,
) => Promise<RunDocument>

export interface CampaignOptions {
  readonly compare: CompareFaces
  readonly runs: number
  readonly seed: number
  readonly scale: 'class' | 'school'
  /** Returns the maximum number of records of a run, by its number from 0. */
  readonly sizeOf: (run: number) => number
  readonly onRun?: (judged: JudgedRun) => void
}

/** A run with the mistakes in its report. */
export interface JudgedRun extends Mistakes {
  readonly run: DrawnRun
  readonly records: number
  readonly differences: number
}

/** The results of all runs of a campaign. */
export interface CampaignResult {
  readonly runs: number
  readonly records: number
  readonly differences: number
  readonly byKind: Readonly<Record<string, number>>
  /** The runs with a wrong report. */
  readonly wrong: readonly JudgedRun[]
}

/** Makes runs one after another: creates differences, compares, and checks the report against these differences. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const { runs, seed, scale, sizeOf, onRun } = options
  const school = await prepareSchool(scale, scale === 'class' ? 700 : 6_000)
  const judged: JudgedRun[] = []
  const byKind: Record<string, number> = {}
  try {
    for (let at = 0; at < runs; at += 1) {
      const run = drawRun(seed + at, sizeOf(at), school.learners.length)
      const one = await judgeRun(options, school, run, (truth) => {
        for (const { kind } of truth) byKind[kind] = (byKind[kind] ?? 0) + 1
      })
      judged.push(one)
      onRun?.(one)
    }
  } finally {
    await school.close()
  }
  const sum = (of: (one: JudgedRun) => number): number => judged.reduce((total, one) => total + of(one), 0)
  return {
    runs: judged.length,
    records: sum(({ records }) => records),
    differences: sum(({ differences }) => differences),
    byKind,
    wrong: judged.filter((one) => one.missed.length + one.false.length > 0),
  }
}

async function judgeRun(
  { compare }: CampaignOptions,
  school: PreparedSchool,
  run: DrawnRun,
  onTruth: (truth: readonly ListedDifference[]) => void,
): Promise<JudgedRun> {
  const learners = run.learners === undefined ? undefined : school.learners.slice(0, run.learners)
  const chosen = learners === undefined ? undefined : new Set(learners)
  const marks = school.marks.filter(
    (mark) => dayOf(mark) >= run.from && dayOf(mark) <= run.to && chosen?.has(mark.Learner) !== false,
  )
  const drawn = drawDifferences(marks, run)
  const truth = run.combined ? combine(drawn) : drawn
  school.show(run.face, truth)
  onTruth(truth)
  const withHistory = new Map(
    [...school.written].filter(
      ([key, day]) => day >= run.from && day <= run.to && chosen?.has(key.slice(0, 36)) !== false,
    ),
  )
  await school.fail(run.failing)
  const document = await compare(school, run, learners)
  await school.fail(false)
  const mistakes = judgeDocument(expectedCounts(truth, { total: marks.length, withHistory }), document)
  return { run, records: document.compared, differences: truth.length, ...mistakes }
}

/** Adds a second difference to marks that differ in some fields. */
function combine(truth: readonly ListedDifference[]): ListedDifference[] {
  const second: Readonly<Partial<Record<DrawnKind, DrawnKind>>> = {
    commentCut: 'recordedOn',
    code: 'commentOther',
    id: 'recordedBy',
    minutesZero: 'start',
  }
  return truth.flatMap((one) => {
    const kind = second[one.kind]
    const other = kind === undefined ? undefined : differenceOf(one.mark, kind, one.face)
    return other === undefined ? [one] : [one, other]
  })
}
