import type { LostInstance } from '../journal/index.ts'
import {
  type Condition,
  formatNumber,
  formatProgress,
  type JudgedConditions,
  judgeConditions,
} from './condition.ts'
import { describeAlarm, describeSides, type GuardVerdict } from './guards/sequential-test.ts'
import type { SeenNote, SeenSide } from './evidence/seen-writes.ts'
import { nextOf, orderOf, type Side, type Stage, type StageSetting } from './stage.ts'
import { describeFault, type Verified } from './store/audit-trail.ts'

/**
 * The check that a step needs: `reply` compares V2's replies while V2 serves, and `readBack` reads V3's writes back on V2 once V3 serves.
 */
export type NeededCheck = 'reply' | 'readBack'

export interface EvidenceThresholds {
  /** The upper bound of the share of differing learner-days must stay under this limit. */
  readonly limit: number
  readonly confidence: number
  /** The largest share of the counted learner-days that one school may make up. */
  readonly schoolShare: number
  /** The minimum number of days at the stage, and of days with comparisons. */
  readonly days: number
}

/**
 * The numbers of distinct records, batches and attendance codes that must have been seen before a step, on V2 at `shadow` and on V3 from
 * `canary` on. One school produces about as many in a week.
 */
const RECORDS = 1_000
const BATCHES = 100
const CODES = 4
/** The minimum share of the sample that must have been compared. */
const COMPARED_SHARE = 0.9

/** The minimum number of schools, unless `schoolShare` implies that the partner has fewer schools. */
const SCHOOLS = 3
/** Properties of records. For each property, at least one compared record must have it. The texts are for operators. */
const traits = {
  late: 'was late',
  comment: 'had a comment',
  correction: 'corrected an earlier one',
} as const

/** The results of comparison since the stage or its percentage changed. */
export interface ComparisonFigures {
  readonly check: NeededCheck
  /**
   * The number of requests that were chosen for the needed check. `comparedShare` (0 to 1) is the share of these requests that was
   * compared, times the share of their records that got a verdict.
   */
  readonly sampled: number
  readonly comparedShare: number
  /** The number of distinct learner-days that the needed check compared. `countedPairs` counts only a limited number of each school. */
  readonly pairs: number
  readonly countedPairs: number
  readonly schools: number
  /** The number of distinct learner-days that differ in any check, plus the number of differing records without a learner or day. */
  readonly differing: number
  readonly bound: number
  /** The number of counted learner-days that would be enough if no further learner-day differs. */
  readonly neededPairs: number
  /** The number of days on which the needed check was made, by the clock of the database. */
  readonly days: number
  /** Fingerprints of the attendance codes that were compared. `codesNotCompared` has the codes that occurred in writes, but in no compared record. */
  readonly codes: readonly string[]
  readonly codesNotCompared: readonly string[]
  /** Fingerprints of attendance codes that are known only from records that V2 refused. */
  readonly codesUnchecked: readonly string[]
  readonly traits: readonly string[]
  /** The number of records that V2 refused. Only a POST would show whether V3 refuses them too. */
  readonly unchecked: number
  /** True if the storage for learner-days is full. */
  readonly full: boolean
  readonly damaged: boolean
}

export interface AdviceInput {
  readonly partner: string
  readonly setting: Pick<StageSetting, 'stage' | 'percent'>
  /** The setting to which the step leads. `nextStep` returns the usual target. */
  readonly target: Pick<StageSetting, 'stage' | 'percent'>
  readonly nowMs: number
  readonly stageSinceMs: number
  readonly seen: Readonly<Record<Side, SeenSide>>
  /** The number of writes to V2 that the adapter could not decode or translate. */
  readonly unreadable: number
  readonly guards: GuardVerdict
  /** The finding of a guard, and the end of the cool-down after the guard acted. */
  readonly coolDown: { readonly finding: string; readonly untilMs: number } | undefined
  /** The time until which a client may resend a batch that V2 received without the journal's knowledge (`quietUntil`). */
  readonly quietUntilMs: number
  readonly credentials: SeenNote['credentials']
  readonly load: {
    /** The highest rate in any minute, on both sides together. */
    readonly peakRecordsPerSecond: number
    /** The rate limit of V3, or `undefined` if V3 has no limit. */
    readonly callsPerSecond: number | undefined
    /** The number of records in one call to V3: 1, or the size of a `$batch`. */
    readonly recordsPerCall: number
  }
  /** Instances with a live lease that have not acknowledged the present revision. */
  readonly unacknowledged: readonly string[]
  /** Lost instances that may still send writes to V2. Such instances block a step that moves units to V3. Empty for other steps. */
  readonly lost: readonly LostInstance[]
  readonly pending: boolean
  /** The first fault of the audit trail, or `undefined` if the trail has no fault. */
  readonly trailFault: Verified['broken']
  /** The results of comparison, or `undefined` if the step needs no comparison. */
  readonly comparison: ComparisonFigures | undefined
  readonly thresholds: EvidenceThresholds
}

export interface Advice extends JudgedConditions {
  readonly figures: {
    readonly daysAtStage: number
    readonly records: number
    readonly batches: number
    readonly schools: number
    readonly codes: number
    readonly codesOnV2Only: readonly string[]
    readonly peakRecordsPerSecond: number
    readonly allowedRecordsPerSecond: number | undefined
    readonly comparison: ComparisonFigures | undefined
  }
}

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** Returns the usual next step from a stage, or `undefined` at `complete`. The first percentage of `canary` is small. */
export function nextStep({ stage }: Pick<StageSetting, 'stage'>): AdviceInput['target'] | undefined {
  const next = nextOf(stage)
  return next && { stage: next, percent: next === 'canary' ? 5 : 100 }
}

/** Returns the check that the next step from a stage needs. `undefined` if the step changes nothing for clients, or if nothing can be compared. */
export function neededCheck(stage: Stage): NeededCheck | undefined {
  if (stage === 'shadow') return 'reply'
  return stage === 'canary' || stage === 'v3' ? 'readBack' : undefined
}

/** Returns whether a step forward is advised and which conditions are not met. Time alone never makes a partner ready. */
export function advise(input: AdviceInput): Advice {
  const { setting, seen, load, comparison } = input
  const side = orderOf(setting.stage) >= orderOf('canary') ? 'v3' : 'v2'
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
    comparison,
  }
  // The step from `legacy` needs no evidence, because at `legacy` nothing is decoded, and the step changes nothing for the client.
  const isWatched = setting.stage !== 'legacy'
  const conditions = [
    ...(orderOf(input.target.stage) < orderOf('canary') ? [] : conditionsOnV3(input, figures)),
    ...(isWatched ? conditionsOnSeen(input, side === 'v3' ? 'on V3' : 'on V2', figures) : []),
    ...(isWatched && comparison !== undefined ? conditionsOnComparison(input, comparison) : []),
    ...conditionsOnState(input, isWatched),
  ]
  return { ...judgeConditions(conditions), figures }
}

function conditionsOnV3(
  { target, credentials }: AdviceInput,
  figures: Advice['figures'],
): readonly Condition[] {
  const { peakRecordsPerSecond, allowedRecordsPerSecond = Infinity } = figures
  const share = target.stage === 'canary' ? target.percent / 100 : 1
  const peak = peakRecordsPerSecond * share
  const ofShare = share < 1 ? ` for ${target.percent} % of the units` : ''
  const denied = {
    accepted: '',
    refused: 'V3 refuses the credentials of this partner.',
    ownRefused:
      'V3 denies the subscription key or the client credentials that the configuration has for this partner.',
    notTried: 'V3 has not accepted the credentials of this partner yet.',
  }[credentials]
  return [
    [
      'credentials accepted by V3',
      credentials === 'notTried' ? 'not yet' : 'blocked',
      credentials !== 'accepted',
      denied,
    ],
    [
      'peak within the rate limit of V3',
      'blocked',
      peak > allowedRecordsPerSecond,
      `The peak of ${formatRate(peak)} records per second${ofShare} exceeds the ${formatRate(allowedRecordsPerSecond)} that V3 allows. Raise v3.callsPerSecond or send batches.`,
      allowedRecordsPerSecond === Infinity
        ? undefined
        : `${formatRate(peak)} of ${formatRate(allowedRecordsPerSecond)} per second`,
    ],
  ]
}

function conditionsOnSeen(
  input: AdviceInput,
  onSide: string,
  figures: Advice['figures'],
): readonly Condition[] {
  const { setting, thresholds, guards, unreadable } = input
  const { days, schoolShare } = thresholds
  const atLeast = (seen: number, wanted: number, what: string): Condition => [
    what,
    'inconclusive',
    seen < wanted,
    `${formatProgress(seen, wanted)} ${wanted === 1 ? `${what.replace(/s$/, '')} was` : `${what} were`} seen ${onSide}.`,
    formatProgress(seen, wanted),
  ]
  const onV2Only = figures.codesOnV2Only.length
  // The guards need writes on V2 for the comparison with V3, and at 100 % there are none.
  const isGuarded = setting.stage === 'canary' && setting.percent < 100
  return [
    atLeast(figures.records, RECORDS, 'distinct records'),
    atLeast(figures.batches, BATCHES, 'batches'),
    atLeast(figures.schools, Math.min(SCHOOLS, schoolsFor(schoolShare)), 'schools'),
    atLeast(figures.codes, CODES, 'attendance codes'),
    [
      'codes of V2 seen on V3',
      'inconclusive',
      onV2Only > 0,
      `V2 saw ${onV2Only} attendance codes that V3 has not seen.`,
    ],
    [
      'writes on both sides for the guards',
      'inconclusive',
      isGuarded && guards.kind === 'inconclusive',
      'The guards have seen too few writes on both sides to judge V3.',
    ],
    [
      'days at this stage',
      'not yet',
      figures.daysAtStage < days,
      `The partner has been at this stage for ${figures.daysAtStage} of ${days} days.`,
      formatProgress(figures.daysAtStage, days),
    ],
    [
      'readable writes',
      'fails',
      unreadable > 0,
      `${unreadable} writes could not be decoded or translated. Once the cause is fixed, ${restartOf(input)} restarts the evidence.`,
    ],
  ]
}

/**
 * Returns the conditions on the results of comparison. The step to `complete` changes no reply of V3, and V2 may be gone by then, so the
 * step needs no comparison. Differences that were found still count.
 */
function conditionsOnComparison(input: AdviceInput, figures: ComparisonFigures): readonly Condition[] {
  const { target, seen, thresholds } = input
  const { limit, confidence, schoolShare, days: neededDays } = thresholds
  const { check, sampled, comparedShare, pairs, countedPairs, schools, differing, bound, neededPairs } =
    figures
  const restart = restartOf(input)
  const [how, key] =
    check === 'readBack' ? ['read back on V2', 'check.v2'] : ['compared with V2', 'compare.percent']
  const isLarge = bound >= limit
  const damaged: Condition = [
    'evidence undamaged',
    'fails',
    figures.damaged,
    `The evidence of comparison in the journal is damaged. Restart the evidence with ${restart}.`,
  ]
  const differs: Condition = [
    'differences under the limit',
    'fails',
    differing > 0 && isLarge,
    `${formatNumber(differing)} learner-days differ, of ${formatNumber(countedPairs)} that count. Up to ${percent(bound)} of all learner-days may differ (${percent(confidence)} confidence), and the limit is ${percent(limit)}. If no others differ, ${formatNumber(neededPairs)} must count. Once the cause is fixed, ${restart} restarts the evidence.`,
    `${formatProgress(differing, countedPairs)} differ`,
  ]
  if (target.stage === 'complete') return [damaged, differs]
  if (sampled === 0) {
    const none = `${formatProgress(0, neededPairs)} learner-days, 0 of ${neededDays} days`
    return [
      damaged,
      check === 'readBack'
        ? [
            'marks read back on V2',
            'fails',
            true,
            `Nothing that V3 served has been read back on V2 (${none}). partners[].check.v2 sets the percentage that is read back.`,
          ]
        : ['replies compared with V2', 'inconclusive', true, `Nothing was compared with V2 (${none}).`],
    ]
  }
  const inSchools = schools === 1 ? '1 school' : `${schools} schools`
  const remedy =
    schools < schoolsFor(schoolShare)
      ? `. Where the partner has no more schools, set rollout.evidence.schoolShare: ${Math.ceil(100 / schools) / 100}.`
      : ' (rollout.evidence.schoolShare).'
  // Counts the codes of V2 and V3, because after the step V3 also receives the records that V2 serves at `canary`.
  const seenCodes = [...seen.v2.codes, ...seen.v3.codes, ...figures.codesNotCompared]
  const settledCodes = [...figures.codes, ...figures.codesUnchecked]
  const missingCodes = new Set(seenCodes.filter((code) => !settledCodes.includes(code)))
  const allCodes = new Set([...figures.codes, ...missingCodes])
  return [
    damaged,
    [
      'share of the sample compared',
      'fails',
      comparedShare < COMPARED_SHARE,
      `Only ${Math.floor(comparedShare * 10_000) / 100} % of the sample were compared, and ${percent(COMPARED_SHARE)} are needed. The metrics markbridge_compare_dropped_total and markbridge_compare_skipped_total show why. If the adapter had no time for more, lower partners[].${key}.`,
      `${Math.floor(comparedShare * 10_000) / 100} % of ${percent(COMPARED_SHARE)}`,
    ],
    differs,
    [
      'learner-days compared',
      'inconclusive',
      differing === 0 && isLarge,
      `${formatProgress(countedPairs, neededPairs)} learner-days were ${how}.`,
      differing === 0 ? formatProgress(countedPairs, neededPairs) : undefined,
    ],
    [
      'comparisons spread over schools',
      'inconclusive',
      isLarge && countedPairs < pairs,
      `${formatNumber(pairs)} learner-days were ${how} in ${inSchools}, but only ${formatNumber(countedPairs)} count, because one school may make up ${percent(schoolShare)} of them${remedy}`,
    ],
    [
      'room for more evidence',
      'fails',
      isLarge && figures.full,
      `The evidence for this stage and percentage is full: it has the maximum number of learner-days. ${restart} restarts the evidence.`,
    ],
    [
      'days with comparisons',
      'inconclusive',
      figures.days < neededDays,
      `${check === 'readBack' ? 'Marks' : 'Replies'} were ${how} on ${figures.days} of ${neededDays} days.`,
      formatProgress(figures.days, neededDays),
    ],
    [
      'attendance codes compared',
      'inconclusive',
      missingCodes.size > 0,
      `${missingCodes.size} of the ${allCodes.size} attendance codes that were seen were never compared.`,
      formatProgress(allCodes.size - missingCodes.size, allCodes.size),
    ],
    ...Object.entries(traits).map(([trait, text]): Condition => [
      `a compared record that ${text}`,
      'inconclusive',
      !figures.traits.includes(trait),
      `No compared record ${text}.`,
    ]),
  ]
}

function conditionsOnState(input: AdviceInput, isWatched: boolean): readonly Condition[] {
  const { partner, target, guards, coolDown, nowMs, quietUntilMs, unacknowledged, pending, lost } = input
  const { trailFault } = input
  const movesToV3 = orderOf(target.stage) >= orderOf('canary')
  const minutesTo = (untilMs: number): string => `another ${Math.ceil((untilMs - nowMs) / MINUTE_MS)} min`
  return [
    [
      'no unrecorded batch',
      'not yet',
      isWatched && movesToV3 && nowMs < quietUntilMs,
      `A batch may have been relayed to V2 unrecorded, and its client may resend it for ${minutesTo(quietUntilMs)}.`,
    ],
    ...lost.map(({ instance, host, pid }): Condition => [
      'lost instance',
      'fails',
      true,
      `Instance ${instance} (${host}, process ${pid}) was lost and may still send writes to V2. Let it reach the journal, or end it and run markbridge rollout dismiss ${instance}.`,
    ]),
    [
      'no alarm of a guard',
      'fails',
      guards.kind === 'alarm',
      `The guards raised an alarm: ${guards.kind === 'alarm' ? describeAlarm(guards.figures) : ''}`,
    ],
    [
      'no evidence against V3 in the guards',
      'fails',
      guards.kind !== 'alarm' && guards.figures !== undefined,
      `${guards.figures === undefined ? '' : describeSides(guards.figures)}. markbridge rollout back ${partner} takes the partner off V3.`,
    ],
    [
      'no guard acted in the last hour',
      'not yet',
      coolDown !== undefined && nowMs < coolDown.untilMs,
      `A guard acted: ${coolDown?.finding ?? ''} No step forward is taken for ${minutesTo(coolDown?.untilMs ?? nowMs)}.`,
    ],
    [
      'acknowledged by every instance',
      'not yet',
      unacknowledged.length > 0,
      `Instances that have not acknowledged the present revision: ${unacknowledged.join(', ')}.`,
    ],
    ['no other change pending', 'not yet', pending, 'Another change of the stage is pending.'],
    [
      'audit trail whole',
      'fails',
      trailFault !== undefined,
      `The audit trail of stages is ${trailFault && describeFault(trailFault)} Find out who changed the database.`,
    ],
  ]
}

const restartOf = ({ partner, setting }: AdviceInput): string =>
  `markbridge rollout set ${partner} ${setting.stage} --restart-evidence --reason <text>`

/** Returns the minimum number of schools if one school may have at most this share of the counted learner-days. */
function schoolsFor(schoolShare: number): number {
  return Math.ceil(1 / schoolShare - 1e-9)
}

/** Formats a share as a percentage. Rounds up, so that a bound above the limit never looks equal to the limit. */
function percent(share: number): string {
  return `${Math.ceil(share * 10_000 - 1e-9) / 100} %`
}

function formatRate(perSecond: number): string {
  return String(Math.round(perSecond * 10) / 10)
}
