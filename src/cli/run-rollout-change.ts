import { systemClock } from '../clock.ts'
import type { Config } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { expectOther } from '../rollout/operators.ts'
import { placeOf, type Stage, type StageSetting } from '../rollout/stage.ts'
import { backOf, judgeStep } from '../rollout/steps.ts'
import { applyChange } from '../rollout/store/apply-change.ts'
import { driveApproved, driveForward, type DriveOptions } from '../rollout/store/drive-forward.ts'
import type { OpenedRolloutStore } from '../rollout/store/open-rollout-store.ts'
import type { Change, RolloutStore } from '../rollout/store/rollout-store.ts'
import { type ChangeResult, exitStatusOf, formatResult, resultToJson } from './rollout/change-result.ts'
import {
  expectMay,
  loadTarget,
  openTargetStore,
  operatorsOf,
  type RolloutTarget,
} from './rollout/open-target.ts'
import { type GuardHold, readGuardHold } from './rollout/guard-hold.ts'
import { reportWaiting } from './rollout/report-waiting.ts'
import { type StageView, viewKnown } from './rollout/stage-view.ts'
import { isSameSetting, movesToV3, targetOf, warningsOf } from './rollout/wanted-step.ts'

/** The flags of `rollout back`. */
export interface ReasonOptions extends RolloutTarget {
  readonly reason?: string
}

/** The flag of a step forward that an operator takes although a guard has acted so short a time ago. */
interface DespiteHold {
  readonly despiteHold?: boolean
}

/** The flags of `rollout approve`. */
export interface ApproveOptions extends ReasonOptions, DespiteHold {}

/** The stage and the flags of `rollout set`. */
export interface SetOptions extends RolloutTarget, DespiteHold {
  readonly stage: Stage
  readonly percent?: number
  readonly always?: readonly string[]
  readonly never?: readonly string[]
  /** Begins the evidence for the next step anew, at the stage where the partner is. */
  readonly restartEvidence?: boolean
  readonly reason: string
}

/** How long a proposal waits for another operator. Instances take no notice of it. */
const APPROVAL_MS = 24 * 3_600_000

/** Changes the stage of a partner; returns the exit status. */
export async function setStage(partner: string, options: SetOptions): Promise<number> {
  const { stage, percent, always, never, restartEvidence = false } = options
  if (restartEvidence && (percent ?? always ?? never) !== undefined)
    throw new AdapterError('ADP_USAGE', '--restart-evidence changes no share: give it alone.')
  if (stage !== 'canary' && (percent ?? always ?? never) !== undefined)
    throw new AdapterError('ADP_USAGE', '--percent, --always and --never are for the stage canary.')
  return change(partner, options, async ({ store, config, view, trailIsSound, driving, hold }) => {
    if (restartEvidence && view.stored?.stage !== stage) {
      const now = view.stored === undefined ? 'damaged' : view.stored.stage
      const message = `its stage is ${now}: --restart-evidence begins the evidence anew at the stage where it is.`
      return { partner, from: view.stored, outcome: { kind: 'refused', message } }
    }
    const to = targetOf(view, options)
    const from = view.stored ?? lowest
    const { direction, error } = judgeStep(from, to, { journalIsDurable: true })
    const { name: by } = expectMay(config, direction === 'back' ? 'back' : 'set')
    const result = { partner, from: view.stored, to }
    if (error !== undefined) return { ...result, outcome: { kind: 'refused', message: error } }
    if (!restartEvidence && isSameSetting(view, to))
      return { ...result, outcome: { kind: 'unchanged', revision: view.revision } }
    const reasonGiven = restartEvidence ? `${options.reason} (evidence begun anew)` : options.reason
    const step = changeOf(view, to, { by, reason: reasonGiven })
    if (direction !== 'forward') return { ...result, outcome: await applyChange(store, step, 'set') }
    if (view.stored === undefined || view.file === undefined) {
      const message =
        view.file === undefined
          ? 'the configuration file has no such partner, so it can only go back.'
          : 'its stage in the journal is damaged, so it can only go back: markbridge rollout back.'
      return { ...result, outcome: { kind: 'refused', message } }
    }
    if (!trailIsSound) return { ...result, outcome: damagedTrail }
    const held = await hold()
    if (held !== undefined && options.despiteHold !== true)
      return { ...result, outcome: { kind: 'held', ...held } }
    const quietMs = movesToV3(from, to) ? config.rollout.resendWindowMs : 0
    const approval = config.rollout.approval === 'two' ? { approvalForMs: APPROVAL_MS } : {}
    const reason = reasonDespite(options.reason, held)
    const forward = { ...step, reason, quietMs, ...approval }
    return { ...result, outcome: await driveForward(driving.store, forward, driving.options) }
  })
}

/** Goes back at once: to `shadow`, and from `shadow` to `legacy`; returns the exit status. */
export async function goBack(partner: string, options: ReasonOptions): Promise<number> {
  return change(partner, options, async ({ store, config, view }) => {
    const { name: by } = expectMay(config, 'back')
    const reason = options.reason ?? ''
    const stage = backOf((view.stored ?? highest).stage)
    for (let now = view; ; now = viewKnown(partner, config, await store.snapshot())) {
      const from = now.stored ?? highest
      // What another one has changed meanwhile counts: it goes back to this stage, and no further.
      const isThere = placeOf(from.stage) <= placeOf(stage)
      const to = { ...from, stage: isThere ? from.stage : stage }
      const result = { partner, from: now.stored, to }
      if (isThere && now.stored !== undefined && now.pending === undefined)
        return { ...result, outcome: { kind: 'unchanged', revision: now.revision } }
      const outcome = await applyChange(store, changeOf(now, to, { by, reason }), 'back')
      if (outcome.kind !== 'stale') return { ...result, outcome }
    }
  })
}

/** Approves a step of another operator and takes it; returns the exit status. */
export async function approveStep(partner: string, options: ApproveOptions): Promise<number> {
  return change(partner, options, async ({ config, view, trailIsSound, driving, hold }) => {
    const actor = expectMay(config, 'approve')
    const { pending } = view
    if (pending?.needsApproval !== true)
      return {
        partner,
        from: view.stored,
        outcome: { kind: 'refused', message: 'no step waits for an approval.' },
      }
    expectOther(actor, pending.by, operatorsOf(config))
    if (!trailIsSound) return { partner, from: view.stored, to: pending, outcome: damagedTrail }
    const held = await hold()
    if (held !== undefined && options.despiteHold !== true)
      return { partner, from: view.stored, to: pending, outcome: { kind: 'held', ...held } }
    const reason = reasonDespite(options.reason ?? '', held)
    const approval = { partner, revision: pending.revision, by: actor.name, reason }
    const outcome = await driveApproved(driving.store, approval, driving.options)
    return { partner, from: view.stored, to: pending, outcome }
  })
}

/** What a change works with. */
interface Changing {
  readonly store: OpenedRolloutStore
  readonly config: Config
  readonly view: StageView
  readonly trailIsSound: boolean
  /** What a guard did, so short a time ago that no step forward follows. */
  readonly hold: () => Promise<GuardHold | undefined>
  /** Its store reports on standard error which instances a pending change waits for. */
  readonly driving: { readonly store: RolloutStore; readonly options: DriveOptions }
}

const damagedTrail = {
  kind: 'refused',
  message:
    'the audit trail of stages is damaged, so no stage goes forward: markbridge rollout verify says where. markbridge rollout back works, and repairs it.',
} as const

const settingAt = (stage: Stage): StageSetting => ({ stage, percent: 0, always: [], never: [] })
/** Stand in for a row that is damaged: from the first any step that V3 serves is forward, from the other any step is back. */
const [lowest, highest] = [settingAt('shadow'), settingAt('complete')]

/** Runs a change and prints what became of it; Ctrl+C withdraws one that waits. */
async function change(
  partner: string,
  options: RolloutTarget,
  act: (changing: Changing) => Promise<ChangeResult>,
): Promise<number> {
  const config = await loadTarget(options)
  const store = await openTargetStore(config).catch((cause: unknown) => {
    throw withRemedy(cause, partner)
  })
  const interruption = new AbortController()
  const stop = (): void => interruption.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  const say = (text: string): void => console.error(`markbridge: ${text}`)
  try {
    const snapshot = await store.snapshot()
    const view = viewKnown(partner, config, snapshot)
    const hold = () => readGuardHold(store, partner, config.tuning, snapshot.nowMs)
    const driving = {
      store: reportWaiting(store, partner, say),
      options: { drainMs: config.tuning.stageDrainMs, clock: systemClock, signal: interruption.signal },
    }
    const trailIsSound = snapshot.trail !== undefined
    const result = await act({ store, config, view, trailIsSound, hold, driving }).catch(
      (cause: unknown): ChangeResult => {
        if (!(cause instanceof AdapterError) || cause.code !== 'ADP_FORBIDDEN') throw cause
        return { partner, from: view.stored, outcome: { kind: 'forbidden', message: cause.message } }
      },
    )
    const status = exitStatusOf(result)
    if (options.json === true) console.log(JSON.stringify(resultToJson(result)))
    else if (status === 0) console.log(formatResult(result))
    else say(formatResult(result))
    if (status === 0) for (const warning of warningsOf(view, result, config, options)) say(warning)
    return status
  } catch (cause) {
    throw withRemedy(cause, partner)
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop)
    await store.close()
  }
}

/** The trail says that the operator knew of it. */
const reasonDespite = (reason: string, held: GuardHold | undefined): string =>
  held === undefined ? reason : `${reason} (despite the guard)`.trimStart()

function changeOf(
  view: StageView,
  to: StageSetting,
  { by, reason }: { readonly by: string; readonly reason: string },
): Change {
  const expectedRevision = view.stored === undefined ? 'damaged' : view.revision
  return { partner: view.partner, expectedRevision, from: view.stored ?? lowest, to, by, reason }
}

/** What still works without the journal. */
function withRemedy(cause: unknown, partner: string): unknown {
  if (!(cause instanceof AdapterError)) return cause
  if (cause.code !== 'ADP_JOURNAL_UNAVAILABLE' && cause.code !== 'ADP_JOURNAL_DAMAGED') return cause
  const remedy = `Without the journal partners[].stageOverride of the configuration file takes ${partner} back: set it on each instance and reload.`
  return new AdapterError(cause.code, `${cause.message} ${remedy}`, { cause })
}
