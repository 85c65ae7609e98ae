import { systemClock } from '../../clock.ts'
import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import {
  type Actor,
  expectAllowed,
  expectOther,
  expectSees,
  type RolloutAction,
} from '../../rollout/operators.ts'
import { backOf, judgeStep, orderOf, type Stage, type StageSetting } from '../../rollout/stage.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import {
  applyChange,
  driveApproved,
  driveForward,
  type DriveOptions,
  DRAIN_MS,
} from '../../rollout/store/drive-change.ts'
import type { Change } from '../../rollout/store/changes.ts'
import { giveAdvice, movesToV3, readCoolDown } from './advice.ts'
import type { ChangeResult } from './change-result.ts'
import { operatorsOf } from './open-store.ts'
import { type StageView, viewKnown } from './stage-view.ts'

export interface StepOptions {
  readonly percent?: number | undefined
  readonly always?: readonly string[] | undefined
  readonly never?: readonly string[] | undefined
  /** Takes a step forward within the cool-down of a guard. */
  readonly despiteHold?: boolean
  /** Takes a step forward although the advice does not call it `ready`. */
  readonly despiteAdvice?: boolean
  /** Restarts the evidence for the next step, at the partner's present stage. */
  readonly restartEvidence?: boolean
  readonly dryRun?: boolean
  readonly reason?: string
}

export interface StageDesk {
  readonly config: Config
  readonly store: OpenedRolloutStore
  /** Throws `ADP_FORBIDDEN` if nobody is identified. */
  readonly actor: () => Actor
  readonly signal: AbortSignal
  readonly onWaiting?: DriveOptions['onWaiting']
}

interface TakenStep {
  readonly view: StageView
  readonly result: ChangeResult
}

/** The time that a proposal waits for another operator. Instances do not act on a proposal. */
const APPROVAL_MS = 24 * 3_600_000

export function setStage(
  desk: StageDesk,
  partner: string,
  stage: Stage,
  options: StepOptions,
): Promise<TakenStep> {
  const { restartEvidence = false, dryRun = false, reason: given = '' } = options
  return take(desk, partner, options, async ({ store, config, view, live, may, driving, beforeForward }) => {
    const from = view.setting
    if (restartEvidence && from.stage !== stage)
      return refused(
        `the stage is ${from.stage}. --restart-evidence restarts the evidence only at the current stage.`,
      )
    const to = targetOf(view, stage, options)
    const { direction, error } = judgeStep(from, to)
    const { name: by } = may(direction === 'back' ? 'back' : 'set')
    if (error !== undefined) return { to, ...refused(error) }
    if (!restartEvidence && isSameSetting(view, to))
      return { to, outcome: { kind: 'unchanged', revision: view.revision } }
    if (direction !== 'forward') {
      if (dryRun) return { to, outcome: { kind: 'possible', waitsFor: [], needsApproval: false } }
      const why = restartEvidence ? `${given} (evidence restarted)` : given
      return { to, outcome: await applyChange(store, changeOf(view, to, by, why), 'set') }
    }
    if (view.file === undefined)
      return {
        to,
        ...refused('the configuration file has no such partner, so the partner can only go back.'),
      }
    if (from.stage !== 'canary' && to.stage === 'canary' && to.percent === 0 && to.always.length === 0)
      return { to, ...refused('a canary of 0 % serves no unit on V3. Set --percent or --always.') }
    const { reason, outcome } = await beforeForward(to)
    const quietMs = movesToV3(from, to) ? config.rollout.resendWindowMs : 0
    const approval = config.rollout.approval === 'two' ? { approvalForMs: APPROVAL_MS } : {}
    const forward = { ...changeOf(view, to, by, reason), quietMs, ...approval }
    if (outcome?.kind === 'held') {
      const next = await store.hindrance(forward)
      return { to, outcome: { ...outcome, earlyUntilMs: next?.kind === 'early' ? next.untilMs : undefined } }
    }
    if (outcome !== undefined) return { to, outcome: (await store.hindrance(forward)) ?? outcome }
    if (dryRun) {
      const possible = {
        kind: 'possible',
        waitsFor: live,
        needsApproval: config.rollout.approval === 'two',
      } as const
      return { to, outcome: (await store.hindrance(forward)) ?? possible }
    }
    return { to, outcome: await driveForward(store, forward, driving) }
  })
}

/** Moves a partner back at once: to `shadow`, and from `shadow` to `legacy`. */
export function goBack(desk: StageDesk, partner: string, options: StepOptions): Promise<TakenStep> {
  return take(desk, partner, options, async ({ store, config, view, may }) => {
    const { name: by } = may('back')
    const stage = backOf(view.setting.stage)
    for (let now = view; ; now = viewKnown(partner, config, await store.snapshot())) {
      const from = now.setting
      // If another operator changes the stage meanwhile, this step still goes back to the stage that it aimed at, and no further.
      const isThere = orderOf(from.stage) <= orderOf(stage)
      const to = { ...from, stage: isThere ? from.stage : stage }
      if (isThere && now.pending === undefined)
        return { from, to, outcome: { kind: 'unchanged', revision: now.revision } }
      if (options.dryRun === true)
        return { from, to, outcome: { kind: 'possible', waitsFor: [], needsApproval: false } }
      const outcome = await applyChange(store, changeOf(now, to, by, options.reason ?? ''), 'back')
      if (outcome.kind !== 'stale') return { from, to, outcome }
    }
  })
}

export function approveStep(desk: StageDesk, partner: string, options: StepOptions): Promise<TakenStep> {
  return take(desk, partner, options, async ({ store, config, view, may, driving, beforeForward }) => {
    const actor = may('approve')
    const { pending: to } = view
    if (to?.needsApproval !== true) return refused('no step waits for an approval.')
    expectOther(actor, to.by, operatorsOf(config))
    const { reason, outcome } = await beforeForward(to)
    if (outcome !== undefined) return { to, outcome }
    const approval = { partner, revision: to.revision, by: actor.name, reason }
    return { to, outcome: await driveApproved(store, approval, driving) }
  })
}

/** `from` is set if it is not the setting that was read first. */
type Changed = Omit<ChangeResult, 'partner' | 'from'> & Partial<Pick<ChangeResult, 'from'>>

const refused = (message: string): Changed => ({ outcome: { kind: 'refused', message } })

interface Changing {
  readonly store: OpenedRolloutStore
  readonly config: Config
  readonly view: StageView
  /** The instances that hold their lease. */
  readonly live: readonly number[]
  /** Throws `ADP_FORBIDDEN` if the person may not take this action. */
  readonly may: (action: RolloutAction) => Actor
  /**
   * Decides whether a step forward may be taken. The reason goes to the audit trail with the verdict of the advice. `outcome` is set if the
   * step is refused: a guard acted a short time ago, or the verdict is not `ready`.
   */
  readonly beforeForward: (to: StageSetting) => Promise<{
    readonly reason: string
    readonly outcome?: ChangeResult['outcome']
  }>
  readonly driving: DriveOptions
}

async function take(
  desk: StageDesk,
  partner: string,
  { reason = '', despiteHold, despiteAdvice }: StepOptions,
  act: (changing: Changing) => Promise<Changed>,
): Promise<TakenStep> {
  const { config, store, signal, onWaiting } = desk
  const snapshot = await store.snapshot()
  const view = viewKnown(partner, config, snapshot)
  const beforeForward: Changing['beforeForward'] = async (to) => {
    const held = await readCoolDown(store, partner, snapshot.nowMs)
    if (held !== undefined && despiteHold !== true) return { reason, outcome: { kind: 'held', ...held } }
    // The proposal that is being approved must not count as another pending change.
    const asked = { ...view, pending: undefined }
    const { verdict, missing } = await giveAdvice(
      asked,
      config,
      { ...{ store, snapshot }, trail: await store.verify() },
      {
        to,
        despiteHold: held !== undefined,
      },
    )
    if (verdict !== 'ready' && despiteAdvice !== true)
      return { reason, outcome: { kind: 'notReady', verdict, missing } }
    // The audit trail records what the operator knew.
    const known = [
      ...(held === undefined ? [] : ['despite the guard']),
      verdict === 'ready' ? 'advice: ready' : ['despite the advice:', verdict + '.', ...missing].join(' '),
    ]
    return { reason: `${reason} (${known.join('; ')})`.trimStart() }
  }
  const may: Changing['may'] = (action) => {
    const actor = desk.actor()
    expectAllowed(actor, action)
    expectSees(actor, partner)
    return actor
  }
  const driving = {
    drainMs: DRAIN_MS,
    clock: systemClock,
    signal,
    ...(onWaiting === undefined ? {} : { onWaiting }),
  }
  const live = snapshot.liveInstances
  const changed = await act({ store, config, view, live, may, beforeForward, driving }).catch(
    (cause: unknown): Changed => {
      if (!(cause instanceof AdapterError) || cause.code !== 'ADP_FORBIDDEN') throw cause
      return { outcome: { kind: 'forbidden', message: cause.message } }
    },
  )
  return { view, result: { partner, from: view.setting, ...changed } }
}

function changeOf(view: StageView, to: StageSetting, by: string, reason: string): Change {
  return { partner: view.partner, expectedRevision: view.revision, from: view.setting, to, by, reason }
}

/**
 * Returns the setting that the options ask for. At `canary`, a value without a flag keeps its present value; a partner that enters `canary`
 * again gets the share in the file, not the share that it had before.
 */
function targetOf(
  { setting, file }: StageView,
  stage: Stage,
  { percent, always, never }: StepOptions,
): StageSetting {
  const { canary } = file?.own ?? {}
  const before = setting.stage === 'canary' || stage !== 'canary' ? setting.percent : canary?.percent
  return {
    stage,
    percent: percent ?? before ?? 0,
    always: always ?? setting.always,
    never: never ?? setting.never,
  }
}

function isSameSetting({ setting, source, pending }: StageView, to: StageSetting): boolean {
  if (source === 'file' || pending !== undefined || setting.stage !== to.stage) return false
  return to.stage !== 'canary' || keyOf(setting) === keyOf(to)
}

const keyOf = ({ percent, always, never }: StageSetting): string =>
  JSON.stringify([percent, always.toSorted(), never.toSorted()])
