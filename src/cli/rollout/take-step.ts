import { systemClock } from '../../clock.ts'
import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { addAdviceNote } from '../../rollout/advice-note.ts'
import {
  type Actor,
  expectAllowed,
  expectOther,
  expectSees,
  type RolloutAction,
} from '../../rollout/operators.ts'
import {
  backOf,
  judgeStep,
  orderOf,
  type Stage,
  type StageSetting,
  type Step,
  type StepOptions,
} from '../../rollout/stage.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import {
  applyChange,
  driveApproved,
  driveForward,
  type DriveOptions,
  DRAIN_MS,
} from '../../rollout/store/drive-change.ts'
import type { RolloutSnapshot } from '../../rollout/store/read-snapshot.ts'
import { nextStep } from '../../rollout/advise.ts'
import type { Change } from '../../rollout/store/changes.ts'
import { giveAdvice, movesToV3 } from './advice.ts'
import type { ChangeResult } from './change-result.ts'
import { operatorsOf } from './open-store.ts'
import { canaryOf, type StageView, viewKnown } from './stage-view.ts'

interface StageDesk {
  readonly config: Config
  readonly store: OpenedRolloutStore
  /** Returns the person who acts. Throws `ADP_FORBIDDEN` if nobody can be identified. */
  readonly actor: () => Actor
  readonly signal: AbortSignal
  readonly onWaiting?: DriveOptions['onWaiting']
  /** False if `serve` may have got an address of V2 as a flag, which `config` does not contain. Default: true. */
  readonly knowsV2?: boolean
}

/** The time that a proposal waits for another operator, in milliseconds. Instances do not act on a proposal before it is approved. */
const APPROVAL_MS = 24 * 3_600_000

/** Takes a step, or reports with `dryRun` what the step would do. The outcome `forbidden` means that the person may not take the step. */
export async function takeStep(desk: StageDesk, partner: string, step: Step): Promise<ChangeResult> {
  const snapshot = await desk.store.snapshot()
  const view = viewKnown(partner, desk.config, snapshot)
  const taking = { ...desk, snapshot, view, options: step }
  const changed = await act(taking, step).catch((cause: unknown): Changed => {
    if (!(cause instanceof AdapterError) || cause.code !== 'ADP_FORBIDDEN') throw cause
    return { outcome: { kind: 'forbidden', message: cause.message } }
  })
  return { partner, from: view.setting, ...changed }
}

interface Taking extends StageDesk {
  readonly snapshot: RolloutSnapshot
  readonly view: StageView
  readonly options: StepOptions
}

/** The result of a step. `from`, if set, replaces the setting that was read first. */
type Changed = Omit<ChangeResult, 'partner' | 'from'> & Partial<Pick<ChangeResult, 'from'>>

const refused = (message: string): Changed => ({ outcome: { kind: 'refused', message } })

function act(taking: Taking, step: Step): Promise<Changed> {
  if (step.kind === 'set') return setStage(taking, step.stage)
  return step.kind === 'back' ? goBack(taking) : approveStep(taking)
}

const possibleAtOnce = { kind: 'possible', waitsFor: [], needsApproval: false } as const

async function setStage(taking: Taking, stage: Stage): Promise<Changed> {
  const { store, view, options } = taking
  const { restartEvidence = false, dryRun = false, reason = '' } = options
  if (restartEvidence && view.setting.stage !== stage)
    return refused(
      `the stage is ${view.setting.stage}. --restart-evidence restarts the evidence only at the current stage. Nothing has changed. Name the current stage, or leave the option out.`,
    )
  const canary = canaryOf(view)
  const to = {
    stage,
    percent: options.percent ?? canary.percent,
    always: options.always ?? canary.always,
    never: options.never ?? canary.never,
  }
  const { direction, error } = judgeStep(view.setting, to)
  const { name: by } = expectMay(taking, direction === 'back' ? 'back' : 'set')
  if (error !== undefined) return { to, ...(await refuseFor(taking, error)) }
  const unserved = lackOfV2(taking, stage)
  if (unserved !== undefined) return { to, ...refused(unserved) }
  if (!restartEvidence && isSameSetting(view, to))
    return { to, outcome: { kind: 'unchanged', revision: view.revision } }
  if (direction === 'forward') return { to, ...(await goForward(taking, to, by)) }
  if (dryRun) return { to, outcome: possibleAtOnce }
  const why = restartEvidence ? `${reason} (evidence restarted)` : reason
  return { to, outcome: await applyChange(store, changeOf(view, to, by, why), 'set') }
}

/** Refuses a step. The refusal names the usual next step, and says whether it can be taken now. */
async function refuseFor(taking: Taking, message: string): Promise<Changed> {
  const next = nextStep(taking.view.setting)
  if (next === undefined) return refused(message)
  const options = { dryRun: true, ...(next.stage === 'canary' ? { percent: next.percent } : {}) }
  const { outcome } = await setStage({ ...taking, options }, next.stage)
  return { outcome: { kind: 'refused', message, next: { ...next, isPossible: outcome.kind === 'possible' } } }
}

async function goForward(taking: Taking, to: StageSetting, by: string): Promise<Changed> {
  const { store, config, view, snapshot, options } = taking
  const { setting: from, file } = view
  if (file === undefined)
    return refused(
      'the configuration file does not have this partner, so the partner can only go back. Nothing has changed. Add the partner to the file.',
    )
  if (from.stage !== 'canary' && to.stage === 'canary' && to.percent === 0 && to.always.length === 0)
    return refuseFor(taking, 'a canary of 0 % serves no unit on V3. Nothing has changed. Add --percent <n>.')
  const { reason, outcome } = await judgeForward(taking, to)
  const needsApproval = config.rollout.approval === 'two'
  const forward = {
    ...changeOf(view, to, by, reason),
    quietMs: movesToV3(from, to) ? config.rollout.resendWindowMs : 0,
    ...(needsApproval ? { approvalForMs: APPROVAL_MS } : {}),
  }
  const possible = { kind: 'possible', waitsFor: snapshot.liveInstances, needsApproval } as const
  const instead = outcome ?? (options.dryRun === true ? possible : undefined)
  if (instead === undefined) return { outcome: await driveForward(store, forward, drivingOf(taking)) }
  const hindrance = await store.hindrance(forward)
  if (instead.kind !== 'held') return { outcome: hindrance ?? instead }
  const earlyUntilMs = hindrance?.kind === 'early' ? hindrance.untilMs : undefined
  return { outcome: { ...instead, earlyUntilMs } }
}

/** Moves a partner back at once: to `shadow`, and from `shadow` to `legacy`. */
async function goBack(taking: Taking): Promise<Changed> {
  const { store, config, view, options } = taking
  const { name: by } = expectMay(taking, 'back')
  const stage = backOf(view.setting.stage)
  for (let now = view; ; now = viewKnown(view.partner, config, await store.snapshot())) {
    const from = now.setting
    // If another operator changes the stage at the same time, the step still goes back to its original target, and no further.
    const isThere = orderOf(from.stage) <= orderOf(stage)
    const to = { ...from, stage: isThere ? from.stage : stage }
    if (isThere && now.pending === undefined)
      return { from, to, outcome: { kind: 'unchanged', revision: now.revision } }
    const unserved = lackOfV2(taking, to.stage)
    if (unserved !== undefined) return { from, to, ...refused(unserved) }
    if (options.dryRun === true) return { from, to, outcome: possibleAtOnce }
    const outcome = await applyChange(store, changeOf(now, to, by, options.reason ?? ''), 'back')
    if (outcome.kind !== 'stale') return { from, to, outcome }
  }
}

/** Returns why V2 cannot serve a partner at a stage, or `undefined` if it can. Without an address of V2, every write would get 503. */
function lackOfV2(
  { config, view: { partner, file }, knowsV2 = true }: Taking,
  stage: Stage,
): string | undefined {
  if (file === undefined || !knowsV2 || orderOf(stage) > orderOf('canary')) return undefined
  if ((file.own.v2.baseUrl ?? config.upstreams.v2?.baseUrl) !== undefined) return undefined
  return `V2 serves at ${stage}, but the configuration has no address of V2 for ${partner}. Nothing has changed. Set upstreams.v2.baseUrl.`
}

async function approveStep(taking: Taking): Promise<Changed> {
  const { store, config, view } = taking
  const actor = expectMay(taking, 'approve')
  const { partner, pending: to } = view
  if (to?.needsApproval !== true)
    return refused(
      'no step waits for an approval. Nothing has changed. An operator can propose a step with markbridge rollout set.',
    )
  expectOther(actor, to.by, operatorsOf(config))
  const { reason, outcome } = await judgeForward(taking, to)
  if (outcome !== undefined) return { to, outcome }
  const approval = { partner, revision: to.revision, by: actor.name, reason }
  return { to, outcome: await driveApproved(store, approval, drivingOf(taking)) }
}

/** Returns the person who acts. Throws `ADP_FORBIDDEN` if the person may not take the action or see the partner. */
function expectMay({ actor: identify, view }: Taking, action: RolloutAction): Actor {
  const actor = identify()
  expectAllowed(actor, action)
  expectSees(actor, view.partner)
  return actor
}

/**
 * Decides whether a step forward may be taken. `reason` is for the audit trail and includes the verdict of the advice. `outcome` is set if
 * the step is refused, because a guard acted a short time ago or the verdict is not `ready`.
 */
async function judgeForward(
  { config, store, snapshot, view, options }: Taking,
  to: StageSetting,
): Promise<{ readonly reason: string; readonly outcome?: ChangeResult['outcome'] }> {
  const { reason = '', despiteHold = false, despiteAdvice = false } = options
  const found = { store, snapshot, trail: await store.verify() }
  // `pending` is cleared, because on approval the pending change is this step itself and must not block it.
  const asked = { ...view, pending: undefined }
  const advice = await giveAdvice(asked, config, found, to, despiteHold)
  const { verdict, missing, coolDown } = advice
  if (coolDown !== undefined && !despiteHold) return { reason, outcome: { kind: 'held', ...coolDown } }
  if (verdict !== 'ready' && !despiteAdvice)
    return { reason, outcome: { kind: 'notReady', verdict, missing } }
  return { reason: addAdviceNote(reason, advice, coolDown !== undefined) }
}

const drivingOf = ({ signal, onWaiting }: StageDesk): DriveOptions => ({
  drainMs: DRAIN_MS,
  clock: systemClock,
  signal,
  ...(onWaiting === undefined ? {} : { onWaiting }),
})

function changeOf(view: StageView, to: StageSetting, by: string, reason: string): Change {
  const { partner, setting: from, revision: expectedRevision } = view
  return { partner, expectedRevision, from, to, by, reason }
}

function isSameSetting({ setting, source, pending }: StageView, to: StageSetting): boolean {
  if (source === 'file' || pending !== undefined || setting.stage !== to.stage) return false
  return to.stage !== 'canary' || keyOf(setting) === keyOf(to)
}

const keyOf = ({ percent, always, never }: StageSetting): string =>
  JSON.stringify([percent, always.toSorted(), never.toSorted()])
