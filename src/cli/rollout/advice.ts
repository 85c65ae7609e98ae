import { callsPerSecondOf } from '../../app/partners.ts'
import { toFigures } from '../../compare/evidence/read-evidence.ts'
import type { Config } from '../../config/index.ts'
import { type Advice, advise, type ComparisonFigures, neededCheck, nextStep } from '../../rollout/advise.ts'
import { judgeConditions } from '../../rollout/condition.ts'
import { GUARD_NAME, readGuardState } from '../../rollout/guards/live-guards.ts'
import {
  atRevision as stateAtRevision,
  describeAlarm,
  describeGuards,
  judge,
} from '../../rollout/guards/sequential-test.ts'
import { settingToJson } from '../../rollout/partner-document.ts'
import { parseNote, peakOf, seenName, seenOf, unreadableOf } from '../../rollout/evidence/seen-writes.ts'
import { orderOf, type StageSetting } from '../../rollout/stage.ts'
import type { Verified } from '../../rollout/store/audit-trail.ts'
import type { RolloutSnapshot } from '../../rollout/store/read-snapshot.ts'
import type { OpenedRolloutStore, RolloutStore } from '../../rollout/store/rollout-store.ts'
import { quietUntil } from '../../rollout/store/changes.ts'
import { formatCounted } from '../text.ts'
import { describeSetting, type StageView } from './stage-view.ts'

export interface GivenAdvice extends Omit<Advice, 'figures'> {
  readonly from: StageSetting
  /** The setting after the step, or `undefined` if the partner is at its last stage. */
  readonly to: Pick<StageSetting, 'stage' | 'percent'> | undefined
  /** The figures on which the advice is based, or `undefined` without a journal. */
  readonly figures: Advice['figures'] | undefined
  /** What the guards have counted, or `undefined` at a stage without guards. */
  readonly guard?: string | undefined
  readonly guardAlarm?: string | undefined
  readonly coolDown?: CoolDown | undefined
}

export interface FoundStages {
  readonly store: OpenedRolloutStore
  readonly snapshot: RolloutSnapshot
  readonly trail: Verified
}

export const findStages = async (store: OpenedRolloutStore): Promise<FoundStages> => ({
  store,
  snapshot: await store.snapshot(),
  trail: await store.verify(),
})

/**
 * Returns the advice on a step forward, by default on the usual next step. `found` is `undefined` without a journal. With `despiteHold`,
 * the advice ignores the cool-down of a guard.
 */
export async function giveAdvice(
  view: StageView,
  config: Config,
  found: FoundStages | undefined,
  wanted?: Pick<StageSetting, 'stage' | 'percent'>,
  despiteHold = false,
): Promise<GivenAdvice> {
  const { setting: from, partner } = view
  const to = wanted ?? nextStep(from)
  const without = { from, to, figures: undefined }
  if (to === undefined) return { ...without, ...judgeConditions([]) }
  if (found === undefined)
    return {
      ...without,
      ...judgeConditions([
        ['a journal', 'inconclusive', true, 'There is no journal, so there is no evidence.'],
      ]),
    }
  const { store, snapshot, trail } = found
  const { nowMs } = snapshot
  const { rollout } = config
  const note = parseNote(await store.readText(seenName(partner)))
  const kept = (await store.evidence.read(partner)).find(
    ({ scope }) => scope.revision === view.revision && scope.stage === from.stage,
  )
  const check = neededCheck(from.stage)
  const own = view.file?.own
  const guardState = stateAtRevision(await readGuardState(store, partner), view.revision)
  const guards = judge(guardState)
  const coolDown = await readCoolDown(store, partner, nowMs)
  const advice = advise({
    partner,
    setting: from,
    target: to,
    nowMs,
    stageSinceMs: view.sinceMs ?? nowMs,
    seen: { v2: seenOf(kept, 'v2'), v3: seenOf(kept, 'v3') },
    unreadable: unreadableOf(kept),
    // `guards` covers the current revision only, because counts at another percentage say nothing about the next step.
    guards,
    coolDown: despiteHold ? undefined : coolDown,
    quietUntilMs: quietUntil(
      snapshot.partners.get(partner)?.state,
      await store.unrecorded(partner),
      rollout.resendWindowMs,
    ),
    credentials: note.credentials,
    load: {
      peakRecordsPerSecond: peakOf(note) / 60,
      callsPerSecond: own && callsPerSecondOf(config)(own),
      recordsPerCall: own === undefined || own.v3.writeMode === 'single' ? 1 : own.v3.batchRecords,
    },
    unacknowledged: unacknowledgedOf(view, snapshot),
    lost: movesToV3(from, to) ? await store.lost() : [],
    pending: view.pending !== undefined,
    trailFault: trail.broken,
    comparison: check && toFigures(kept, check, rollout.evidence),
    thresholds: rollout.evidence,
  })
  const guardAlarm = guards.kind === 'alarm' ? describeAlarm(guards.figures) : undefined
  const guard = from.stage === 'canary' ? describeGuards(guardState) : undefined
  return { from, to, ...advice, guard, guardAlarm, coolDown }
}

function unacknowledgedOf(
  { partner, revision, source }: StageView,
  { liveInstances, acknowledgements }: RolloutSnapshot,
): readonly string[] {
  if (source === 'file') return []
  const isAcknowledged = (instance: number): boolean =>
    acknowledgements.some(
      (one) => one.instance === instance && one.partner === partner && one.revision >= revision,
    )
  return liveInstances.filter((instance) => !isAcknowledged(instance)).map((one) => `instance ${one}`)
}

/** Returns true if a step moves units (schools or clients) from V2 to V3. V3 cannot recognise a resend of a batch that only V2 received. */
export function movesToV3(from: Pick<StageSetting, 'stage'>, to: Pick<StageSetting, 'stage'>): boolean {
  return orderOf(to.stage) >= orderOf('canary') && orderOf(from.stage) <= orderOf('canary')
}

export interface CoolDown {
  readonly untilMs: number
  readonly finding: string
}

/** The number of newest entries of the audit trail that are searched for an action of a guard. */
const ROWS = 200
/** The time after an action of a guard during which a step forward needs `--despite-hold`, in milliseconds. */
const COOL_DOWN_MS = 3_600_000

async function readCoolDown(
  store: Pick<RolloutStore, 'history'>,
  partner: string,
  nowMs: number,
): Promise<CoolDown | undefined> {
  const rows = await store.history({ partner, limit: ROWS })
  const row = rows.findLast(({ by }) => by === GUARD_NAME)
  if (row === undefined || nowMs >= row.atMs + COOL_DOWN_MS) return undefined
  return { untilMs: row.atMs + COOL_DOWN_MS, finding: row.reason }
}

export function fullAdviceToJson(partner: string, advice: GivenAdvice): object {
  const { from, to, verdict, missing, figures } = advice
  const allowedRecordsPerSecond = figures?.allowedRecordsPerSecond ?? null
  return {
    partner,
    from: settingToJson(from),
    to: to ?? null,
    verdict,
    missing,
    figures: figures ? { ...figures, allowedRecordsPerSecond, comparison: figures.comparison ?? null } : null,
  }
}

export function formatAdvice({ to, verdict, missing }: GivenAdvice): string {
  if (to === undefined)
    return verdict === 'ready' ? 'advice: this is the last stage' : ['advice: none', ...missing].join('\n')
  return [
    `advice on ${describeSetting(to)}: ${verdict}`,
    ...missing.map((sentence) => `  - ${sentence}`),
  ].join('\n')
}

export function linesOf(figures: Advice['figures']): readonly string[] {
  const { daysAtStage, records, batches, schools, codes, peakRecordsPerSecond, allowedRecordsPerSecond } =
    figures
  const allowed =
    allowedRecordsPerSecond === undefined ? 'no limit' : `${round(allowedRecordsPerSecond)} allowed`
  return [
    `at this stage: ${formatCounted(daysAtStage, 'day')}`,
    `seen: about ${formatCounted(records, 'different record')} in ${formatCounted(batches, 'batch', 'batches')} of about ${formatCounted(schools, 'school')}, with ${formatCounted(codes, 'attendance code')}`,
    `peak: ${round(peakRecordsPerSecond)} records per second (${allowed})`,
    ...(figures.comparison === undefined ? [] : linesOfComparison(figures.comparison)),
  ]
}

function linesOfComparison(figures: ComparisonFigures): readonly string[] {
  const {
    sampled,
    comparedShare,
    pairs,
    countedPairs,
    differing,
    bound,
    neededPairs,
    days,
    codes,
    unchecked,
  } = figures
  return [
    `compared: ${percent(comparedShare)} of a sample of ${formatCounted(sampled, 'request')}, on ${formatCounted(days, 'day')}, with ${formatCounted(codes.length, 'attendance code')}`,
    `learner-days: ${pairs}, of which ${countedPairs} count (${neededPairs} needed); ${differing} differ, so at most ${percent(bound)} of all do`,
    ...(unchecked === 0
      ? []
      : [
          `unchecked: ${formatCounted(unchecked, 'record')} that V2 refused, which only a POST to V3 could check`,
        ]),
  ]
}

const percent = (share: number): string => `${round(share * 100)} %`
const round = (rate: number): number => Math.round(rate * 100) / 100
