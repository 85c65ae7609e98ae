import { systemClock } from '../../clock.ts'
import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { expectOther } from '../../rollout/operators.ts'
import { backOf, judgeStep, lowered, placeOf, type Stage, type StageSetting } from '../../rollout/stage.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import {
  applyChange,
  driveApproved,
  driveForward,
  type DriveOptions,
} from '../../rollout/store/drive-change.ts'
import type { Change } from '../../rollout/store/changes.ts'
import { movesToV3, readCoolDown } from './advice.ts'
import { answerOf, type ChangeResult, formatWaiting } from './change-result.ts'
import { expectMay, useStore, operatorsOf } from './open-store.ts'
import { untilSignal } from '../signals.ts'
import type { Target } from '../options.ts'
import { loadTarget } from '../target.ts'
import type { Answer } from '../text.ts'
import { type StageView, viewKnown } from './stage-view.ts'

/** The flags of `rollout back`. */
interface ReasonOptions extends Target {
  readonly reason?: string
}

/** The flag of a step forward that an operator takes although a guard has acted so short a time ago. */
interface DespiteHold {
  readonly despiteHold?: boolean
}

/** The flags of `rollout approve`. */
interface ApproveOptions extends ReasonOptions, DespiteHold {}

/** The flags of `rollout set`. */
interface SetOptions extends Target, DespiteHold {
  readonly percent?: number
  readonly always?: readonly string[]
  readonly never?: readonly string[]
  /** Begins the evidence for the next step anew, at the stage where the partner is. */
  readonly restartEvidence?: boolean
  readonly reason: string
}

/** How long a proposal waits for another operator. Instances take no notice of it. */
const APPROVAL_MS = 24 * 3_600_000

/** Changes the stage of a partner. */
export async function setStage(partner: string, stage: Stage, options: SetOptions): Promise<Answer> {
  const { percent, always, never, restartEvidence = false } = options
  if (restartEvidence && (percent ?? always ?? never) !== undefined)
    throw new AdapterError('ADP_USAGE', '--restart-evidence changes no share: give it alone.')
  if (stage !== 'canary' && (percent ?? always ?? never) !== undefined)
    throw new AdapterError('ADP_USAGE', '--percent, --always and --never are for the stage canary.')
  return change(partner, options, async ({ store, config, view, driving, beforeForward }) => {
    const from = view.stored ?? lowest
    if (restartEvidence && view.stored?.stage !== stage)
      return refused(
        `its stage is ${view.stored?.stage ?? 'damaged'}: --restart-evidence begins the evidence anew at the stage where it is.`,
      )
    const to = targetOf(view, stage, options)
    const { direction, error } = judgeStep(from, to)
    const { name: by } = expectMay(config, direction === 'back' ? 'back' : 'set')
    if (error !== undefined) return { to, ...refused(error) }
    if (!restartEvidence && isSameSetting(view, to))
      return { to, outcome: { kind: 'unchanged', revision: view.revision } }
    const given = restartEvidence ? `${options.reason} (evidence begun anew)` : options.reason
    if (direction !== 'forward')
      return { to, outcome: await applyChange(store, changeOf(view, to, by, given), 'set') }
    if (view.file === undefined)
      return { to, ...refused('the configuration file has no such partner, so it can only go back.') }
    if (view.stored === undefined)
      return {
        to,
        ...refused('its stage in the journal is damaged, so it can only go back: markbridge rollout back.'),
      }
    const { reason, outcome } = await beforeForward(given, options)
    if (outcome !== undefined) return { to, outcome }
    const quietMs = movesToV3(from, to) ? config.rollout.resendWindowMs : 0
    const approval = config.rollout.approval === 'two' ? { approvalForMs: APPROVAL_MS } : {}
    const forward = { ...changeOf(view, to, by, reason), quietMs, ...approval }
    return { to, outcome: await driveForward(store, forward, driving) }
  })
}

/** Goes back at once: to `shadow`, and from `shadow` to `legacy`. */
export async function goBack(partner: string, options: ReasonOptions): Promise<Answer> {
  return change(partner, options, async ({ store, config, view }) => {
    const { name: by } = expectMay(config, 'back')
    const stage = backOf((view.stored ?? highest).stage)
    for (let now = view; ; now = viewKnown(partner, config, await store.snapshot())) {
      const from = now.stored
      // What another one has changed meanwhile counts: it goes back to this stage, and no further.
      const isThere = placeOf((from ?? highest).stage) <= placeOf(stage)
      const to = { ...(from ?? highest), stage: isThere && from !== undefined ? from.stage : stage }
      if (isThere && from !== undefined && now.pending === undefined)
        return { from, to, outcome: { kind: 'unchanged', revision: now.revision } }
      const outcome = await applyChange(store, changeOf(now, to, by, options.reason ?? ''), 'back')
      if (outcome.kind !== 'stale') return { from, to, outcome }
    }
  })
}

/** Approves a step of another operator and takes it. */
export async function approveStep(partner: string, options: ApproveOptions): Promise<Answer> {
  return change(partner, options, async ({ store, config, view, driving, beforeForward }) => {
    const actor = expectMay(config, 'approve')
    const { pending: to } = view
    if (to?.needsApproval !== true) return refused('no step waits for an approval.')
    expectOther(actor, to.by, operatorsOf(config))
    const { reason, outcome } = await beforeForward(options.reason ?? '', options)
    if (outcome !== undefined) return { to, outcome }
    const approval = { partner, revision: to.revision, by: actor.name, reason }
    return { to, outcome: await driveApproved(store, approval, driving) }
  })
}

/** What became of a change, where `from` is not the stage that was read first. */
type Changed = Omit<ChangeResult, 'partner'>

const refused = (message: string): Changed => ({ outcome: { kind: 'refused', message } })

/** What a change works with. */
interface Changing {
  readonly store: OpenedRolloutStore
  readonly config: Config
  readonly view: StageView
  /** The reason for the audit trail, or why no step forward is taken: the trail is damaged, or a guard acted a short time ago. */
  readonly beforeForward: (
    reason: string,
    flags: DespiteHold,
  ) => Promise<{ readonly reason: string; readonly outcome?: ChangeResult['outcome'] }>
  readonly driving: DriveOptions
}

const damagedTrail = {
  kind: 'refused',
  message:
    'the audit trail of stages is damaged, so no stage goes forward: markbridge rollout verify says where. markbridge rollout back works, and repairs it.',
} as const

const settingAt = (stage: Stage): StageSetting => ({ stage, percent: 0, always: [], never: [] })
/** Stand in for a row that is damaged: from the first any step that V3 serves is forward, from the other any step is back. */
const [lowest, highest] = [settingAt('shadow'), settingAt('complete')]

/** Runs a change, and says what became of it; Ctrl+C withdraws one that waits. */
async function change(
  partner: string,
  options: Target,
  act: (changing: Changing) => Promise<Changed>,
): Promise<Answer> {
  const config = await loadTarget(options)
  const attempt = async (store: OpenedRolloutStore): Promise<Answer> => {
    const snapshot = await store.snapshot()
    const view = viewKnown(partner, config, snapshot)
    const beforeForward: Changing['beforeForward'] = async (reason, { despiteHold }) => {
      if (snapshot.trail === undefined) return { reason, outcome: damagedTrail }
      const held = await readCoolDown(store, partner, config.tuning, snapshot.nowMs)
      if (held === undefined) return { reason }
      if (despiteHold !== true) return { reason, outcome: { kind: 'held', ...held } }
      // The trail says that the operator knew of it.
      return { reason: `${reason} (despite the guard)`.trimStart() }
    }
    const stopping = untilSignal()
    const driving = {
      drainMs: config.tuning.stageDrainMs,
      clock: systemClock,
      signal: stopping.signal,
      onWaiting: createWaitingReport(),
    }
    const changed = await act({ store, config, view, beforeForward, driving })
      .catch((cause: unknown): Changed => {
        if (!(cause instanceof AdapterError) || cause.code !== 'ADP_FORBIDDEN') throw cause
        return { outcome: { kind: 'forbidden', message: cause.message } }
      })
      .finally(() => stopping.stop())
    const result = { partner, from: view.stored, ...changed }
    const answer = answerOf(result)
    if (answer.status === 0) for (const warning of changeWarnings(view, result, config, options)) say(warning)
    return answer
  }
  return useStore(config, attempt).catch((cause: unknown) => {
    throw withRemedy(cause, partner)
  })
}

/** Says for which instances a step waits, whenever that changes. */
function createWaitingReport(): NonNullable<DriveOptions['onWaiting']> {
  let last = ''
  return (waiting, { liveInstances }) => {
    const text = waiting.length === 0 ? last : formatWaiting(waiting, liveInstances.length)
    if (text !== last) say(text)
    last = text
  }
}

const say = (text: string): void => console.error(`markbridge: ${text}`)

function changeOf(view: StageView, to: StageSetting, by: string, reason: string): Change {
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

/**
 * The setting that is wanted. Within `canary` what no flag names stays; a partner that enters it again gets the share of the file, not the
 * one that it had.
 */
function targetOf(
  { stored, file }: StageView,
  stage: Stage,
  { percent, always, never }: Pick<SetOptions, 'percent' | 'always' | 'never'>,
): StageSetting {
  const { canary } = file?.own ?? {}
  const before = stored?.stage === 'canary' || stage !== 'canary' ? stored?.percent : canary?.percent
  return {
    stage,
    percent: percent ?? before ?? 0,
    always: always ?? stored?.always ?? canary?.always ?? [],
    never: never ?? stored?.never ?? canary?.never ?? [],
  }
}

/** True where nothing is left to do: the journal has this very setting, and no change is pending. */
function isSameSetting({ stored, storedIn, pending }: StageView, to: StageSetting): boolean {
  if (storedIn === 'file' || pending !== undefined || stored?.stage !== to.stage) return false
  return to.stage !== 'canary' || keyOf(stored) === keyOf(to)
}

const keyOf = ({ percent, always, never }: StageSetting): string =>
  JSON.stringify([percent, always.toSorted(), never.toSorted()])

/** What the operator should know about a change that was made. */
function changeWarnings(
  { file }: StageView,
  { partner, to }: ChangeResult,
  { upstreams }: Pick<Config, 'upstreams'>,
  { config: path }: Target,
): readonly string[] {
  if (to === undefined || file === undefined) return []
  const serves = lowered(to, file.fileStage)
  const hasV2 = (file.own.v2.baseUrl ?? upstreams.v2?.baseUrl) !== undefined
  return [
    ...(serves.stage === to.stage
      ? []
      : [`warning: partners[].stageOverride of the file still lowers ${partner} to ${serves.stage}.`]),
    // Without a file the address is a flag of serve.
    ...(path !== undefined && !hasV2 && placeOf(serves.stage) <= placeOf('canary')
      ? [
          `warning: V2 serves ${partner} at ${serves.stage}, and ${path} has no address of V2: requests get 503. Set upstreams.v2.baseUrl.`,
        ]
      : []),
  ]
}

/** The flags of `rollout dismiss`. */
interface DismissOptions extends Target {
  readonly reason: string
}

/** Takes the operator's word that a lost instance is off. */
export async function dismissInstance(instance: number, options: DismissOptions): Promise<Answer> {
  const config = await loadTarget(options)
  const { name: by } = expectMay(config, 'set')
  const result = await useStore(config, (store) => store.dismiss(instance, by, options.reason))
  const message = formatDismissed(instance, result)
  const status = result.kind === 'dismissed' ? 0 : 1
  return {
    document: { result: result.kind, instance, message },
    text: () => message,
    status,
    isRefusal: status === 1,
  }
}

function formatDismissed(
  instance: number,
  result: Awaited<ReturnType<OpenedRolloutStore['dismiss']>>,
): string {
  switch (result.kind) {
    case 'dismissed':
      return (
        `Instance ${instance} (${result.host}, process ${result.pid}) is dismissed. ` +
        'Steps to V3 are possible once rollout.resendWindowMs have passed from now.'
      )
    case 'live':
      return `Instance ${instance} holds its lease and acknowledges steps; nothing was done.`
    case 'unknown':
      return `No instance ${instance} is lost; nothing was done. markbridge rollout show names those that are.`
  }
}
