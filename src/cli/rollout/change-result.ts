import { pendingToJson, settingToJson } from '../../rollout/partner-document.ts'
import { percentOnV3, type StageSetting } from '../../rollout/stage.ts'
import type { applyChange, DriveResult, WaitedFor } from '../../rollout/store/drive-change.ts'
import { type Answer, formatCounted, formatTime } from '../text.ts'
import type { CoolDown, GivenAdvice } from './advice.ts'
import { describePending, describeSetting } from './stage-view.ts'

type ChangeOutcome =
  | Awaited<ReturnType<typeof applyChange>>
  | DriveResult
  | { readonly kind: 'unchanged'; readonly revision: number }
  | Possible
  | Held
  | NotReady
  | Refused
  | { readonly kind: 'forbidden'; readonly message: string }

/** The effect that a change would have, for `--dry-run`. */
interface Possible {
  readonly kind: 'possible'
  /** The instances that must drain first. The list is empty for a step back, which takes effect at once. */
  readonly waitsFor: readonly number[]
  readonly needsApproval: boolean
}

/** A refusal because a guard took the partner back a short time ago. */
interface Held extends CoolDown {
  readonly kind: 'held'
  /** The time until which even `--despite-hold` is refused, or `undefined` if there is no such time or it was not determined. */
  readonly earlyUntilMs?: number | undefined
}

interface Refused {
  readonly kind: 'refused'
  readonly message: string
  /** The usual next step, if the refused step was another one. */
  readonly next?: NextStep
}

interface NextStep extends Pick<StageSetting, 'stage' | 'percent'> {
  /** True if a dry run found that the step can be taken now. */
  readonly isPossible: boolean
}

interface NotReady extends Pick<GivenAdvice, 'missing'> {
  readonly kind: 'notReady'
  readonly verdict: string
}

export interface ChangeResult {
  readonly partner: string
  readonly from: StageSetting
  readonly to?: StageSetting | undefined
  readonly outcome: ChangeOutcome
}

/** The exit status of a step that waits for an approval. Such a step has not failed. */
const WAITS = 4

/** Converts the result of a change to text and JSON. The exit status is 0 if the partner has the setting, or could get it in a dry run. */
export function answerOf(result: ChangeResult): Answer {
  const { partner, from, to, outcome } = result
  const { word, message, details } = describeResult(result)
  const isDone = word === 'done' || word === 'unchanged' || word === 'possible'
  return {
    document: {
      result: word,
      partner,
      from: settingToJson(from),
      to: to === undefined ? null : settingToJson(to),
      ...('revision' in outcome ? { revision: outcome.revision } : {}),
      ...details,
      message,
    },
    text: () => message,
    status: isDone ? 0 : word === 'needsApproval' ? WAITS : 1,
    isRefusal: !isDone,
  }
}

function describeResult({ partner, from, to, outcome }: ChangeResult) {
  const target = to === undefined ? '' : describeSetting(to)
  const step = `${describeSetting(from)} -> ${target}`
  const said = (word: string, message: string, details: object = {}) => {
    return { word, message: `${partner}: ${message}`, details }
  }
  switch (outcome.kind) {
    case 'applied':
    case 'committed':
      return said('done', `${step} (revision ${outcome.revision}).`)
    case 'unchanged':
      return said('unchanged', `the setting is already ${target}. Nothing has changed.`)
    case 'possible': {
      const { waitsFor, needsApproval } = outcome
      const approval = needsApproval ? 'It would wait 24 h for the approval of another operator. ' : ''
      const drain =
        waitsFor.length === 0
          ? 'It would take effect at once'
          : `It would wait for ${waitsFor.length === 1 ? 'instance' : 'instances'} ${waitsFor.join(', ')} to drain`
      return said('possible', `${step} is possible now. ${approval}${drain}. Nothing has changed.`, {
        waitsFor,
        needsApproval,
      })
    }
    case 'needsApproval':
      return said(
        'needsApproval',
        `${step} is proposed. Another operator must approve it within 24 h: ` +
          `markbridge rollout approve ${partner}. Nothing has changed yet.`,
      )
    case 'undrained':
      return said(
        'undrained',
        [
          `${step} was withdrawn: writes did not end in time. Nothing has changed.`,
          ...outcome.instances.map(
            ({ writes, ...one }) =>
              `  ${describeInstance(one)}: ${writes === undefined ? 'has not acknowledged the change' : `${formatCounted(writes, 'write')} under way`}`,
          ),
        ].join('\n'),
        { instances: outcome.instances.map((one) => ({ ...one, writes: one.writes ?? null })) },
      )
    case 'lost': {
      const instances = outcome.instances.map(({ leaseUntilMs, ...one }) => ({
        ...one,
        leaseUntil: formatTime(leaseUntilMs),
      }))
      return said(
        'lost',
        [
          `${step} is refused: instances were lost. The instances may be cut off from the journal and still send writes to V2.`,
          ...instances.map((one) => `  ${describeInstance(one)}: its lease ended at ${one.leaseUntil}`),
          'Nothing has changed. Let the instances reach the journal again, or end them and run markbridge rollout dismiss <instance> for each instance.',
        ].join('\n'),
        { instances },
      )
    }
    case 'early': {
      const [until, leftMs] = [formatTime(outcome.untilMs), Math.max(0, outcome.untilMs - outcome.nowMs)]
      return said(
        'early',
        `${step} is refused: a batch that V2 served unrecorded may still be sent again (rollout.resendWindowMs). ` +
          `Nothing has changed. Try again in ${formatLeft(leftMs)}, at ${until}.`,
        { until, leftMs },
      )
    }
    case 'held': {
      const { finding, earlyUntilMs } = outcome
      const until = formatTime(outcome.untilMs)
      const remedy = to?.stage === 'canary' ? ', or leave schools on V2 with --never' : ''
      const early =
        earlyUntilMs === undefined
          ? ''
          : ` Even then the step is refused before ${formatTime(earlyUntilMs)}, since a batch that V2 served unrecorded may still be sent again (rollout.resendWindowMs).`
      return said(
        'held',
        `${step} is refused: a guard took the partner back, and no step forward is taken before ${until}. ${finding} Nothing has changed. ` +
          `Correct the cause first${remedy}. To take the step anyway, add --despite-hold.${early}`,
        { until, finding, ...(earlyUntilMs === undefined ? {} : { earlyUntil: formatTime(earlyUntilMs) }) },
      )
    }
    case 'notReady': {
      const { verdict, missing } = outcome
      return said(
        'notReady',
        [
          `${step} is refused: the advice on it is "${verdict}", not "ready". Nothing has changed.`,
          ...missing.map((sentence) => `  - ${sentence}`),
          'Provide the missing evidence first. To take the step anyway, add --despite-advice.',
        ].join('\n'),
        { verdict, missing },
      )
    }
    case 'pending': {
      const pending = pendingToJson(outcome.pending)
      return said(
        'pending',
        `another change is pending: ${describePending(pending)}. Nothing has changed. markbridge rollout back withdraws the pending change.`,
        { pending },
      )
    }
    case 'stale':
    case 'forward':
    case 'gone':
      return said(
        'stale',
        `the stage was changed in the meantime, or the proposed change has expired. Nothing has changed. markbridge rollout history ${partner} lists the changes.`,
      )
    case 'interrupted':
      return said('withdrawn', `${step} was withdrawn. Nothing has changed.`)
    case 'own':
      return said(
        'forbidden',
        'the operator who proposed a step cannot approve the step. Nothing has changed. Ask another operator to approve the step.',
      )
    case 'refused': {
      const { message, next } = outcome
      if (next === undefined) return said('refused', message)
      const { stage, isPossible } = next
      const nextJson = { stage, percent: percentOnV3(next), isPossible }
      return said('refused', `${message} ${describeNext(partner, next)}`, { next: nextJson })
    }
    case 'forbidden':
      return said('forbidden', outcome.message)
  }
}

function describeNext(partner: string, { stage, percent, isPossible }: NextStep): string {
  const share = stage === 'canary' ? ` --percent ${percent}` : ''
  return isPossible
    ? `The next step is possible now: markbridge rollout set ${partner} ${stage}${share} --reason <text>`
    : `The next step is ${describeSetting({ stage, percent })}, which is not possible yet: markbridge rollout advise ${partner} says what is missing.`
}

const describeInstance = (one: {
  readonly instance: number
  readonly host: string
  readonly pid: number
}): string => `instance ${one.instance} (${one.host}, process ${one.pid})`

/** Formats a line such as `waiting for 1 of 2 instances to drain: instance 4 (3 writes)`. */
export function formatWaiting(waiting: readonly WaitedFor[], live: number): string {
  const texts = waiting.map(
    ({ instance, writes }) =>
      `instance ${instance} (${writes === undefined ? 'no answer yet' : formatCounted(writes, 'write')})`,
  )
  return `waiting for ${waiting.length} of ${formatCounted(live, 'instance')} to drain: ${texts.join(', ')}`
}

/** Formats a duration such as `12 min 5 s`. */
function formatLeft(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1_000))
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
