import type { SeenNote } from './seen/seen-note.ts'
import {
  type ComparisonFigures,
  comparisonObstacles,
  type ComparisonThresholds,
} from './advise-comparison.ts'
import { describeAlarm, type GuardVerdict } from './guards/judge.ts'
import type { LostInstance } from '../journal/index.ts'
import { placeOf, type Side, type Stage, type StageSetting, stages } from './stage.ts'

/** What was seen of a partner's writes on one side since its stage began. */
export interface SeenWrites {
  /** Distinct records: a repeated one counts once. */
  readonly records: number
  readonly batches: number
  readonly schools: number
  /** Letters of the marks. */
  readonly codes: readonly string[]
}

/** How much has to be seen before a step forward is advised. */
export interface AdviceThresholds {
  readonly daysAtStage: number
  /** Each on the side that the step is judged by: V2 at `shadow`, V3 from `canary` on. */
  readonly records: number
  readonly batches: number
  readonly schools: number
  /** Different letters. */
  readonly codes: number
}

/** The defaults: a school week with all of its lessons. */
export const defaultThresholds: AdviceThresholds = {
  daysAtStage: 5,
  records: 1_000,
  batches: 100,
  schools: 3,
  codes: 4,
}

/** What is known about a partner. */
export interface AdviceInput {
  readonly partner: string
  readonly setting: Pick<StageSetting, 'stage' | 'percent'>
  /** The step in question; `nextStep` has the usual one. */
  readonly target: Pick<StageSetting, 'stage' | 'percent'>
  readonly nowMs: number
  readonly stageSinceMs: number
  readonly seen: Readonly<Record<Side, SeenWrites>>
  /** Schools that the partner has in all, where that is known: fewer than the threshold suffice then. */
  readonly knownSchools?: number | undefined
  /** Writes of V2 that the adapter could not decode or translate. */
  readonly unreadable: number
  readonly guards: GuardVerdict
  /** What a guard has found, and until when that speaks against a step. */
  readonly coolDown: { readonly finding: string; readonly untilMs: number } | undefined
  /** The last batch that was relayed to V2 without the journal knowing it. */
  readonly lastUnrecordedMs: number | undefined
  readonly resendWindowMs: number
  /** What V3 says to the credentials of the partner. */
  readonly credentials: SeenNote['credentials']
  readonly load: {
    /** The highest number of records in a minute on both sides together, as a rate. */
    readonly peakRecordsPerSecond: number
    /** Undefined: V3 does not limit calls. */
    readonly callsPerSecond: number | undefined
    /** Records that one call takes: 1, or the size of a `$batch`. */
    readonly recordsPerCall: number
  }
  /** Instances with a live lease that have not acknowledged the present revision. */
  readonly unacknowledged: readonly string[]
  /** Instances that were lost and may still send writes to V2: they hold up a step that moves units to V3. Empty for another step. */
  readonly lost: readonly LostInstance[]
  /** A step is waiting for its drain or for another operator. */
  readonly pending: boolean
  /** What comparison has found at this stage and share; undefined: the step needs none. */
  readonly comparison: ComparisonInput | undefined
  readonly thresholds?: Partial<AdviceThresholds> | undefined
}

/** What comparison has found, and what is needed. */
export interface ComparisonInput {
  readonly figures: ComparisonFigures
  readonly thresholds: ComparisonThresholds
}

/** Whether the next step is advised. */
export interface Advice {
  /**
   * `blocked`: the step would fail. `inconclusive`: too little was seen to say anything. `not yet`: enough was seen, something else is missing.
   */
  readonly verdict: 'ready' | 'not yet' | 'blocked' | 'inconclusive'
  /** One sentence for each thing that is in the way; empty when ready. */
  readonly missing: readonly string[]
  readonly figures: {
    readonly daysAtStage: number
    readonly records: number
    readonly batches: number
    readonly schools: number
    readonly codes: number
    readonly codesOnV2Only: readonly string[]
    readonly peakRecordsPerSecond: number
    /** Undefined: no limit. */
    readonly allowedRecordsPerSecond: number | undefined
    /** Undefined: the step needs no comparison. */
    readonly comparison: ComparisonFigures | undefined
  }
}

type Obstacle = readonly [weight: 'blocked' | 'inconclusive' | 'not yet', sentence: string]

const DAY_MS = 86_400_000

/** The next step forward from a stage; undefined at `complete`. A first share is small. */
export function nextStep({ stage }: Pick<StageSetting, 'stage'>): AdviceInput['target'] | undefined {
  const next: Stage | undefined = stages[placeOf(stage) + 1]
  return next === undefined ? undefined : { stage: next, percent: next === 'canary' ? 5 : 100 }
}

/** Says whether a step forward is advised, and what is missing; pure. Time alone never makes a partner ready. */
export function advise(input: AdviceInput): Advice {
  const { setting, seen, load } = input
  const side = placeOf(setting.stage) >= placeOf('canary') ? 'v3' : 'v2'
  const { records, batches, schools, codes } = seen[side]
  const figures = {
    daysAtStage: Math.floor((10 * (input.nowMs - input.stageSinceMs)) / DAY_MS) / 10,
    records,
    batches,
    schools,
    codes: new Set(codes).size,
    codesOnV2Only:
      side === 'v2' ? [] : [...new Set(seen.v2.codes)].filter((code) => !codes.includes(code)).sort(),
    peakRecordsPerSecond: load.peakRecordsPerSecond,
    allowedRecordsPerSecond:
      load.callsPerSecond === undefined ? undefined : load.callsPerSecond * load.recordsPerCall,
    comparison: input.comparison?.figures,
  }
  // Nothing is decoded at `legacy`, and nothing changes for the client at `shadow`: there is nothing to wait for.
  const watched =
    setting.stage === 'legacy'
      ? []
      : [
          ...evidenceObstacles(input, side, figures),
          ...comparedObstacles(input),
          ...recordingObstacles(input),
        ]
  const obstacles = [...blockingObstacles(input, figures), ...watched, ...stateObstacles(input)]
  const has = (wanted: Obstacle[0]): boolean => obstacles.some(([weight]) => weight === wanted)
  const verdict = (['blocked', 'inconclusive', 'not yet'] as const).find(has) ?? 'ready'
  return { verdict, missing: obstacles.map(([, sentence]) => sentence), figures }
}

function blockingObstacles({ target, credentials }: AdviceInput, figures: Advice['figures']): Obstacle[] {
  if (placeOf(target.stage) < placeOf('canary')) return []
  const obstacles: Obstacle[] = []
  if (credentials === 'refused') obstacles.push(['blocked', 'V3 refuses the credentials of this partner.'])
  if (credentials === 'ownRefused')
    obstacles.push([
      'blocked',
      'V3 denies the subscription key or the client credentials that the configuration has for this partner.',
    ])
  if (credentials === 'notTried')
    obstacles.push(['not yet', 'V3 has not accepted the credentials of this partner yet.'])
  const { peakRecordsPerSecond, allowedRecordsPerSecond } = figures
  const share = target.stage === 'canary' ? target.percent / 100 : 1
  const peak = peakRecordsPerSecond * share
  if (allowedRecordsPerSecond !== undefined && peak > allowedRecordsPerSecond) {
    const ofShare = share < 1 ? ` for ${target.percent} % of the units` : ''
    obstacles.push([
      'blocked',
      `The peak of ${formatRate(peak)} records per second${ofShare} exceeds the ${formatRate(allowedRecordsPerSecond)} that V3 allows: raise v3.callsPerSecond or send batches.`,
    ])
  }
  return obstacles
}

function evidenceObstacles(input: AdviceInput, side: Side, figures: Advice['figures']): Obstacle[] {
  const { setting, thresholds, guards, knownSchools, unreadable } = input
  const needed = { ...defaultThresholds, ...thresholds }
  const obstacles: Obstacle[] = []
  const onSide = side === 'v3' ? 'on V3' : 'on V2'
  const atLeast = (seen: number, wanted: number, words: string): void => {
    if (seen < wanted) obstacles.push(['inconclusive', `${seen} of ${wanted} ${words} were seen ${onSide}.`])
  }
  atLeast(figures.records, needed.records, 'distinct records')
  atLeast(figures.batches, needed.batches, 'batches')
  atLeast(figures.schools, Math.min(needed.schools, knownSchools ?? Infinity), 'schools')
  atLeast(figures.codes, needed.codes, 'attendance codes')
  if (figures.codesOnV2Only.length > 0) {
    obstacles.push([
      'inconclusive',
      `V2 saw ${figures.codesOnV2Only.length} attendance codes that V3 has not seen.`,
    ])
  }
  // Where V2 serves nothing, there is nothing to compare V3 with.
  if (setting.stage === 'canary' && setting.percent < 100 && guards.verdict === 'inconclusive') {
    obstacles.push(['inconclusive', 'The guards have too few writes of both sides to judge V3.'])
  }
  if (figures.daysAtStage < needed.daysAtStage) {
    obstacles.push([
      'not yet',
      `The partner has been at this stage for ${figures.daysAtStage} of ${needed.daysAtStage} days.`,
    ])
  }
  if (unreadable > 0) {
    const remedy = `Once the cause is mended, ${restartOf(input)} begins the evidence anew.`
    obstacles.push(['not yet', `${unreadable} writes could not be decoded or translated. ${remedy}`])
  }
  return obstacles
}

/** Codes of both sides: what V2 serves at `canary` is to be V3's. */
function comparedObstacles(input: AdviceInput): readonly Obstacle[] {
  const { comparison, target, seen } = input
  if (comparison === undefined) return []
  const seenCodes = [...seen.v2.codes, ...seen.v3.codes]
  return comparisonObstacles(comparison.figures, comparison.thresholds, {
    target: target.stage,
    seenCodes,
    restart: restartOf(input),
  })
}

/** The command that begins evidence anew, at the same stage and share. */
const restartOf = ({ partner, setting }: AdviceInput): string =>
  `markbridge rollout set ${partner} ${setting.stage} --restart-evidence --reason <text>`

function recordingObstacles({ target, nowMs, lastUnrecordedMs, resendWindowMs }: AdviceInput): Obstacle[] {
  if (placeOf(target.stage) < placeOf('canary') || lastUnrecordedMs === undefined) return []
  const leftMs = lastUnrecordedMs + resendWindowMs - nowMs
  if (leftMs <= 0) return []
  return [
    [
      'not yet',
      `A batch may have been relayed to V2 unrecorded, and it may be sent again for another ${Math.ceil(leftMs / 60_000)} min.`,
    ],
  ]
}

function stateObstacles({ guards, coolDown, nowMs, unacknowledged, pending, lost }: AdviceInput): Obstacle[] {
  const obstacles: Obstacle[] = []
  for (const { instance, host, pid } of lost) {
    obstacles.push([
      'not yet',
      `Instance ${instance} (${host}, process ${pid}) was lost and may still send writes to V2: let it reach the journal, or end it and run markbridge rollout dismiss ${instance}.`,
    ])
  }
  if (guards.verdict === 'alarm')
    obstacles.push(['not yet', `The guards raised an alarm: ${describeAlarm(guards.figures)}`])
  if (coolDown !== undefined && nowMs < coolDown.untilMs) {
    const minutes = Math.ceil((coolDown.untilMs - nowMs) / 60_000)
    obstacles.push([
      'not yet',
      `A guard acted: ${coolDown.finding} No step forward is taken for another ${minutes} min.`,
    ])
  }
  if (unacknowledged.length > 0) {
    obstacles.push([
      'not yet',
      `Instances that have not acknowledged the present revision: ${unacknowledged.join(', ')}.`,
    ])
  }
  if (pending) obstacles.push(['not yet', 'Another change of the stage is pending.'])
  return obstacles
}

function formatRate(perSecond: number): string {
  return String(Math.round(perSecond * 10) / 10)
}
