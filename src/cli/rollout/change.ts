import { AdapterError } from '../../errors.ts'
import type { Stage, Step, StepOptions } from '../../rollout/stage.ts'
import type { DriveOptions } from '../../rollout/store/drive-change.ts'
import { answerOf, formatWaiting } from './change-result.ts'
import { expectMay, findActor, isUncreated, useStore } from './open-store.ts'
import { untilSignal } from '../signals.ts'
import type { Target } from '../options.ts'
import { loadTarget } from '../target.ts'
import type { Answer } from '../text.ts'
import { takeStep } from './take-step.ts'

type ChangeOptions = Target & StepOptions

/** Sets the stage of a partner. Throws `ADP_USAGE` if a real step has no reason, or if options cannot be combined. */
export async function setStage(partner: string, stage: Stage, options: ChangeOptions): Promise<Answer> {
  const { percent, always, never, restartEvidence = false, dryRun = false } = options
  if (!dryRun && options.reason === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      'There is no reason for the audit trail. Nothing has changed. Give --reason, or try the step with --dry-run.',
    )
  if (restartEvidence && (percent ?? always ?? never) !== undefined)
    throw new AdapterError(
      'ADP_USAGE',
      '--restart-evidence cannot be combined with --percent, --always or --never. Nothing has changed. Give only one of them.',
    )
  if (stage !== 'canary' && (percent ?? always ?? never) !== undefined)
    throw new AdapterError(
      'ADP_USAGE',
      '--percent, --always and --never apply to the stage canary only. Nothing has changed. Leave these options out.',
    )
  return change(partner, { ...options, kind: 'set', stage }, options)
}

/** Takes a step and returns its outcome. Ctrl+C withdraws a step that is waiting. */
export async function change(partner: string, step: Step, options: Target): Promise<Answer> {
  const config = await loadTarget(options)
  return useStore(config, async (store) => {
    const stopping = untilSignal()
    const desk = {
      config,
      store,
      actor: () => findActor(config),
      signal: stopping.signal,
      onWaiting: createWaitingReport(),
      // Without a configuration file, `serve` may have got the address of V2 as a flag, which this command does not know.
      knowsV2: options.config !== undefined,
    }
    return answerOf(await takeStep(desk, partner, step).finally(() => stopping.stop()))
  }).catch((cause: unknown) => {
    throw isUncreated(cause, config) ? cause : withRemedy(cause, partner)
  })
}

/** Creates a function that prints the instances for which a step waits, whenever these instances change. */
function createWaitingReport(): NonNullable<DriveOptions['onWaiting']> {
  let last = ''
  return (waiting, { liveInstances }) => {
    const text = waiting.length === 0 ? last : formatWaiting(waiting, liveInstances.length)
    if (text !== last) say(text)
    last = text
  }
}

const say = (text: string): void => console.error(`markbridge: ${text}`)

/** Adds to an error of the journal the step that the operator can still take without the journal. */
function withRemedy(cause: unknown, partner: string): unknown {
  if (!(cause instanceof AdapterError)) return cause
  if (cause.code !== 'ADP_JOURNAL_UNAVAILABLE' && cause.code !== 'ADP_JOURNAL_DAMAGED') return cause
  const remedy = `Without the journal, an instance that is started with journal.url: none and stage: legacy lets V2 serve ${partner}.`
  return new AdapterError(cause.code, `${cause.message} ${remedy}`, { cause })
}

export async function dismissInstance(instance: number, options: ChangeOptions): Promise<Answer> {
  const config = await loadTarget(options)
  const { name: by } = expectMay(config, 'dismiss')
  const result = await useStore(config, (store) => store.dismiss(instance, by, options.reason ?? ''))
  const message =
    result.kind === 'dismissed'
      ? `Instance ${instance} (${result.host}, process ${result.pid}) is dismissed. ` +
        'Steps to V3 are possible once the time in rollout.resendWindowMs has passed.'
      : result.kind === 'live'
        ? `Instance ${instance} is not lost: it holds its lease. Nothing has changed.`
        : `Instance ${instance} is not among the lost instances. Nothing has changed. markbridge rollout show lists the lost instances.`
  const isRefusal = result.kind !== 'dismissed'
  return {
    document: { result: result.kind, instance, message },
    text: () => message,
    status: isRefusal ? 1 : 0,
    isRefusal,
  }
}
