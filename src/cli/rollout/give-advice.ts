import { MAX_BATCH_RECORDS } from '../../app/to-partner.ts'
import { callsPerSecondOf, type Config } from '../../config/index.ts'
import { toFigures } from '../../compare/evidence/index.ts'
import {
  type Advice,
  advise,
  type AdviceInput,
  type AdviceThresholds,
  defaultThresholds,
  nextStep,
} from '../../rollout/advise.ts'
import { neededCheck, schoolsFor } from '../../rollout/advise-comparison.ts'
import { atRevision as countedAt } from '../../rollout/guards/evidence.ts'
import { judge } from '../../rollout/guards/judge.ts'
import { readEvidence } from '../../rollout/guards/live-guards.ts'
import {
  figuresOf,
  nothingSeen,
  parseSeen,
  peakOf,
  seenName,
  type SeenNote,
} from '../../rollout/seen/seen-note.ts'
import type { Stage, StageSetting } from '../../rollout/stage.ts'
import type { OpenedRolloutStore } from '../../rollout/store/open-rollout-store.ts'
import type { RolloutSnapshot, RolloutStore } from '../../rollout/store/rollout-store.ts'
import { readGuardHold } from './guard-hold.ts'
import { settingToJson } from './rollout-json.ts'
import type { StageView } from './stage-view.ts'
import { movesToV3 } from './wanted-step.ts'

/** Advice on the next step of a partner. */
export interface GivenAdvice extends Omit<Advice, 'figures'> {
  readonly from: StageSetting | undefined
  /** Undefined: the partner is at its last stage, or its stage is not known. */
  readonly to: Pick<StageSetting, 'stage' | 'percent'> | undefined
  /** Undefined where nothing is known: without a journal. */
  readonly figures: Advice['figures'] | undefined
}

/** Advises on the next step by what is kept in the journal. */
export async function giveAdvice(
  view: StageView,
  config: Config,
  snapshot: RolloutSnapshot | undefined,
  store: (RolloutStore & Pick<OpenedRolloutStore, 'evidence'>) | undefined,
): Promise<GivenAdvice> {
  const { stored: from, partner } = view
  const to = from === undefined ? undefined : nextStep(from)
  const without = { from, to, figures: undefined }
  if (from === undefined)
    return { ...without, verdict: 'blocked', missing: ['The stage in the journal is damaged.'] }
  if (to === undefined) return { ...without, verdict: 'ready', missing: [] }
  if (snapshot === undefined || store === undefined)
    return { ...without, verdict: 'inconclusive', missing: ['Without a journal nothing was seen.'] }
  const { nowMs } = snapshot
  const { rollout } = config
  const evidence = await readEvidence(store, partner)
  const seen = atRevision(parseSeen(await store.readEvidence(seenName(partner))), view.revision)
  const unrecorded = await store.unrecorded(partner)
  const own = view.file?.own
  const callsPerSecond = own === undefined ? undefined : callsPerSecondOf(config)(own)
  const advice = advise({
    partner,
    setting: from,
    target: to,
    nowMs,
    stageSinceMs: view.sinceMs ?? nowMs,
    seen: { v2: figuresOf(seen.sides.v2), v3: figuresOf(seen.sides.v3) },
    unreadable: seen.unreadable,
    // What was counted at another share is no reason to go on.
    guards: judge(countedAt(evidence, view.revision)),
    coolDown: await readGuardHold(store, partner, config.tuning, nowMs),
    lastUnrecordedMs: lastUnrecorded(unrecorded),
    resendWindowMs: rollout.resendWindowMs,
    credentials: seen.credentials,
    load: {
      peakRecordsPerSecond: peakOf(seen) / 60,
      callsPerSecond,
      recordsPerCall: own === undefined || own.v3.writeMode === 'single' ? 1 : MAX_BATCH_RECORDS,
    },
    unacknowledged: unacknowledgedOf(view, snapshot),
    lost: movesToV3(from, to) ? await store.lost() : [],
    pending: view.pending !== undefined,
    comparison: await readComparison(view, from.stage, config, store),
    thresholds: thresholdsOf(neededOf(config)),
  })
  return { from, to, ...advice }
}

/** What has to be seen and compared before a step is advised. */
type NeededEvidence = Config['rollout']['evidence'] & Config['tuning']['evidence']

export const neededOf = ({ rollout, tuning }: Pick<Config, 'rollout' | 'tuning'>): NeededEvidence => ({
  ...rollout.evidence,
  ...tuning.evidence,
})

/** A partner with few schools says so by the share that one of them may make up. */
function thresholdsOf({ days, records, batches, codes, schoolShare }: NeededEvidence): AdviceThresholds {
  const schools = Math.min(defaultThresholds.schools, schoolsFor(schoolShare))
  return { daysAtStage: days, records, batches, codes, schools }
}

/** What comparison has found at the present stage and share. */
async function readComparison(
  { partner, revision }: StageView,
  stage: Stage,
  config: Pick<Config, 'rollout' | 'tuning'>,
  { evidence }: Pick<OpenedRolloutStore, 'evidence'>,
): Promise<AdviceInput['comparison']> {
  const check = neededCheck(stage)
  if (check === undefined) return undefined
  const kept = (await evidence.read(partner)).find(
    ({ scope }) => scope.revision === revision && scope.stage === stage,
  )
  const thresholds = neededOf(config)
  return { figures: toFigures(kept, check, thresholds), thresholds }
}

/** Advice as `rollout show --json` prints it. */
export function adviceToJson({ verdict, missing }: Pick<GivenAdvice, 'verdict' | 'missing'>): object {
  return { verdict, missing }
}

/** Advice as `rollout advise --json` prints it. */
export function fullAdviceToJson(partner: string, advice: GivenAdvice): object {
  const { from, to, figures } = advice
  return {
    partner,
    from: from === undefined ? null : settingToJson(from),
    to: to ?? null,
    ...adviceToJson(advice),
    figures:
      figures === undefined
        ? null
        : {
            ...figures,
            allowedRecordsPerSecond: figures.allowedRecordsPerSecond ?? null,
            comparison: figures.comparison ?? null,
          },
  }
}

/** What was seen at an earlier stage or share says nothing of this one; what V3 says to the credentials, and the peak, do. */
function atRevision(seen: SeenNote, revision: number): SeenNote {
  if (seen.revision === revision) return seen
  const { credentials, minutes, peakPerMinute } = seen
  return { ...nothingSeen(revision), credentials, minutes, peakPerMinute }
}

function lastUnrecorded({
  notedMs,
  killedMs,
  lostMs,
}: Awaited<ReturnType<RolloutStore['unrecorded']>>): number | undefined {
  const times = [notedMs, killedMs, lostMs].filter((ms) => ms !== undefined)
  return times.length === 0 ? undefined : Math.max(...times)
}

/** Instances that serve by an older revision, by their numbers. */
function unacknowledgedOf(
  { partner, revision, storedIn }: StageView,
  { liveInstances, acknowledgements }: RolloutSnapshot,
): readonly string[] {
  if (storedIn === 'file') return []
  const known = new Set(
    acknowledgements
      .filter((one) => one.partner === partner && one.revision >= revision)
      .map(({ instance }) => instance),
  )
  return liveInstances.filter((instance) => !known.has(instance)).map((instance) => `instance ${instance}`)
}
