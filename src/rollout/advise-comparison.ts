import type { Stage } from './stage.ts'

/** The check that a step needs: of replies while V2 serves, reading back on V2 once V3 does. Nothing else proves V3's POST. */
export type NeededCheck = 'reply' | 'readBack'

/** What has to be compared before a step forward is advised. */
export interface ComparisonThresholds {
  /** The upper bound of the share of learners and days that differ has to be under this. */
  readonly limit: number
  readonly confidence: number
  /** Share of the sample that has to have been compared. */
  readonly comparedShare: number
  /** Share of the counted learners and days that one school may make up. */
  readonly schoolShare: number
  readonly days: number
  /** What at least one compared record has to have had. */
  readonly traits: readonly ('late' | 'comment' | 'correction')[]
}

/** What comparison has found since the stage or its share changed. */
export interface ComparisonFigures {
  readonly check: NeededCheck
  /** Requests that were chosen for the needed check, and the share of them, by requests and their records, that was compared. */
  readonly sampled: number
  readonly comparedShare: number
  /** Distinct learners and days that went through the needed check, and those of them that count: one school has its cap. */
  readonly pairs: number
  readonly countedPairs: number
  readonly schools: number
  /** Distinct learners and days that differ in any check, and each differing record that names none. */
  readonly differing: number
  /** The upper bound of the share that differs. */
  readonly bound: number
  /** Counted pairs that would be enough, with as many that differ. */
  readonly neededPairs: number
  /** Days on which the needed check was made, by the clock of the database. */
  readonly days: number
  /** Fingerprints of attendance codes that were compared, and of those that were only seen. */
  readonly codes: readonly string[]
  readonly codesNotCompared: readonly string[]
  readonly traits: readonly string[]
  /** Codes of errors that V2 answered with and that were never compared. */
  readonly errorsNotCompared: readonly string[]
  /** True: no more learners and days are kept. */
  readonly full: boolean
  readonly damaged: boolean
}

type Obstacle = readonly [weight: 'inconclusive' | 'not yet', sentence: string]

/** The check that the next step from a stage needs; undefined: none, since nothing changes for clients, or nothing can be compared. */
export function neededCheck(stage: Stage): NeededCheck | undefined {
  if (stage === 'shadow') return 'reply'
  return stage === 'canary' || stage === 'v3' ? 'readBack' : undefined
}

const traitWords = {
  late: 'was late',
  comment: 'had a comment',
  correction: 'corrected an earlier one',
} as const

/** The schools that it takes where one may make up this share of what counts. */
export function schoolsFor(schoolShare: number): number {
  return Math.ceil(1 / schoolShare - 1e-9)
}

/**
 * What comparison has against a step; pure. The step to `complete` changes nothing that V3 answers, and V2 may be gone by then: nothing has to
 * be compared for it, but differences that were found count.
 */
export function comparisonObstacles(
  figures: ComparisonFigures,
  thresholds: ComparisonThresholds,
  {
    target,
    seenCodes,
    restart,
  }: {
    readonly target: Stage
    readonly seenCodes: readonly string[]
    /** The command that begins the evidence anew. */
    readonly restart: string
  },
): readonly Obstacle[] {
  const obstacles: Obstacle[] = []
  if (figures.damaged)
    obstacles.push([
      'not yet',
      `The evidence of comparison in the journal is damaged; ${restart} begins it anew.`,
    ])
  if (target === 'complete') return [...obstacles, ...boundObstacles(figures, thresholds, restart)]
  const nothing = nothingCompared(figures, thresholds)
  if (nothing !== undefined) return [...obstacles, nothing]
  return [
    ...obstacles,
    ...shareObstacles(figures, thresholds),
    ...boundObstacles(figures, thresholds, restart),
    ...countObstacles(figures, thresholds, restart),
    ...coverageObstacles(figures, thresholds, seenCodes),
  ]
}

function nothingCompared(
  { check, sampled, neededPairs }: ComparisonFigures,
  { days }: ComparisonThresholds,
): Obstacle | undefined {
  if (sampled > 0) return undefined
  const needed = `0 of ${neededPairs} learners and days, 0 of ${days} days`
  return check === 'readBack'
    ? [
        'not yet',
        `Nothing that V3 served has been read back on V2 (${needed}): partners[].check.v2 is the percentage that is.`,
      ]
    : ['inconclusive', `Nothing was compared with V2 (${needed}).`]
}

function shareObstacles(
  { comparedShare, check }: ComparisonFigures,
  { comparedShare: needed }: ComparisonThresholds,
): Obstacle[] {
  if (comparedShare >= needed) return []
  const key = check === 'readBack' ? 'check.v2' : 'compare.percent'
  return [
    [
      'not yet',
      `Only ${Math.floor(comparedShare * 10_000) / 100} % of the sample were compared, and ${percent(needed)} are needed: markbridge_compare_dropped_total and markbridge_compare_skipped_total say why; where there was no time for more, lower partners[].${key}.`,
    ],
  ]
}

/** Differences that were found. */
function boundObstacles(
  { differing, countedPairs, bound, neededPairs }: ComparisonFigures,
  { limit, confidence }: ComparisonThresholds,
  restart: string,
): Obstacle[] {
  if (differing === 0 || bound < limit) return []
  return [
    [
      'not yet',
      `${differing} learners and days differ, with ${countedPairs} that count: up to ${percent(bound)} of all may (${percent(confidence)} confidence), and the limit is ${percent(limit)}. ${neededPairs} would have to count if no other differs. Once the cause is mended, ${restart} begins the evidence anew.`,
    ],
  ]
}

/** Too few for a conclusion, without a difference. */
function countObstacles(
  { check, differing, countedPairs, pairs, bound, neededPairs, schools, days, full }: ComparisonFigures,
  { limit, schoolShare, days: neededDays }: ComparisonThresholds,
  restart: string,
): Obstacle[] {
  const how = check === 'readBack' ? 'read back on V2' : 'compared with V2'
  const obstacles: Obstacle[] = []
  if (differing === 0 && bound >= limit)
    obstacles.push(['inconclusive', `${countedPairs} of ${neededPairs} learners and days were ${how}.`])
  if (bound >= limit && countedPairs < pairs) {
    const many = schools === 1 ? '1 school' : `${schools} schools`
    const remedy =
      schools < schoolsFor(schoolShare)
        ? `. Where the partner has no more schools, set rollout.evidence.schoolShare: ${Math.ceil(100 / schools) / 100}.`
        : ' (rollout.evidence.schoolShare).'
    obstacles.push([
      'inconclusive',
      `${pairs} were ${how} in ${many}, of which ${countedPairs} count: one school may make up ${percent(schoolShare)} of them${remedy}`,
    ])
  }
  if (bound >= limit && full)
    obstacles.push([
      'not yet',
      `No more learners and days are kept at this stage and share; ${restart} begins anew.`,
    ])
  if (days < neededDays)
    obstacles.push(['inconclusive', `Replies were ${how} on ${days} of ${neededDays} days.`])
  return obstacles
}

function coverageObstacles(
  { codes, codesNotCompared, traits, errorsNotCompared }: ComparisonFigures,
  { traits: neededTraits }: ComparisonThresholds,
  seenCodes: readonly string[],
): Obstacle[] {
  const obstacles: Obstacle[] = []
  const missing = new Set([...seenCodes, ...codesNotCompared].filter((code) => !codes.includes(code)))
  if (missing.size > 0)
    obstacles.push([
      'inconclusive',
      `${missing.size} of the ${new Set([...codes, ...missing]).size} attendance codes that were seen were never compared.`,
    ])
  for (const trait of neededTraits) {
    if (!traits.includes(trait))
      obstacles.push(['inconclusive', `No compared record ${traitWords[trait]} (rollout.evidence.traits).`])
  }
  if (errorsNotCompared.length > 0)
    obstacles.push([
      'inconclusive',
      `Errors that V2 answered with and that were never compared: ${errorsNotCompared.join(', ')}.`,
    ])
  return obstacles
}

/** Rounded up, so that a bound never shows as the limit that it is above. */
function percent(share: number): string {
  return `${Math.ceil(share * 10_000 - 1e-9) / 100} %`
}
