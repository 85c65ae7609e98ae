import type { StageSetting } from '../../rollout/stage.ts'
import type { applyChange, DriveResult, WaitedFor } from '../../rollout/store/drive-change.ts'
import { type Answer, formatTime } from '../text.ts'
import type { CoolDown } from './advice.ts'
import { describePending, describeSetting, pendingToJson, settingToJson } from './stage-view.ts'

/** What became of a change. */
type ChangeOutcome =
  | Awaited<ReturnType<typeof applyChange>>
  | DriveResult
  | { readonly kind: 'unchanged'; readonly revision: number }
  | ({ readonly kind: 'held' } & CoolDown)
  | { readonly kind: 'refused' | 'forbidden'; readonly message: string }

/** A change and what became of it. */
export interface ChangeResult {
  readonly partner: string
  /** Undefined: the row of the partner is damaged, or nothing was asked of the journal. */
  readonly from?: StageSetting | undefined
  readonly to?: StageSetting | undefined
  readonly outcome: ChangeOutcome
}

/** A result in words. */
interface DescribedResult {
  /** For scripts. */
  readonly word: string
  /** A sentence or several. */
  readonly message: string
  /** More members of the document in JSON. */
  readonly details?: object
}

/** A result as `--json` prints it and as a text; exit status 0 where the partner is where the command wanted it. */
export function answerOf(result: ChangeResult): Answer {
  const { partner, from, to, outcome } = result
  const { word, message, details } = describeResult(result)
  const isDone = word === 'done' || word === 'unchanged'
  return {
    document: {
      result: word,
      partner,
      from: from === undefined ? null : settingToJson(from),
      to: to === undefined ? null : settingToJson(to),
      ...('revision' in outcome ? { revision: outcome.revision } : {}),
      ...details,
      message,
    },
    text: () => message,
    status: isDone ? 0 : 1,
    isRefusal: !isDone,
  }
}

function describeResult({ partner, from, to, outcome }: ChangeResult): DescribedResult {
  const step = `${from === undefined ? 'damaged' : describeSetting(from)} -> ${to === undefined ? '' : describeSetting(to)}`
  switch (outcome.kind) {
    case 'applied':
    case 'committed':
      return { word: 'done', message: `${partner}: ${step} (revision ${outcome.revision}).` }
    case 'unchanged':
      return {
        word: 'unchanged',
        message: `${partner}: ${to === undefined ? '' : describeSetting(to)} already; nothing was changed.`,
      }
    case 'needsApproval':
      return {
        word: 'needsApproval',
        message:
          `${partner}: ${step} is proposed and waits 24 h for the approval of another operator: ` +
          `markbridge rollout approve ${partner}. Nothing has changed yet.`,
      }
    case 'undrained':
      return {
        word: 'undrained',
        details: { instances: outcome.instances.map((one) => ({ ...one, writes: one.writes ?? null })) },
        message: [
          `${partner}: ${step} was withdrawn: writes did not end in time. Nothing has changed.`,
          ...outcome.instances.map(({ instance, host, pid, writes }) => {
            const what =
              writes === undefined ? 'has not acknowledged the change' : `${formatWrites(writes)} under way`
            return `  instance ${instance} (${host}, process ${pid}): ${what}`
          }),
        ].join('\n'),
      }
    case 'lost':
      return {
        word: 'lost',
        details: {
          instances: outcome.instances.map(({ leaseUntilMs, ...one }) => ({
            ...one,
            leaseUntil: formatTime(leaseUntilMs),
          })),
        },
        message: [
          `${partner}: ${step} is refused: instances were lost without a clean end. Cut off from the journal, they may still send writes to V2.`,
          ...outcome.instances.map(
            ({ instance, host, pid, leaseUntilMs }) =>
              `  instance ${instance} (${host}, process ${pid}): its lease ended at ${formatTime(leaseUntilMs)}`,
          ),
          `Let them reach the journal again, or end them and run markbridge rollout dismiss <instance> for each.`,
        ].join('\n'),
      }
    case 'early': {
      const [until, leftMs] = [formatTime(outcome.untilMs), Math.max(0, outcome.untilMs - outcome.nowMs)]
      return {
        word: 'early',
        details: { until, leftMs },
        message:
          `${partner}: ${step} is refused: a batch that V2 served unrecorded may still be sent again (rollout.resendWindowMs). ` +
          `Try again in ${formatLeft(leftMs)}, at ${until}.`,
      }
    }
    case 'held': {
      const { finding } = outcome
      const until = formatTime(outcome.untilMs)
      return {
        word: 'held',
        details: { until, finding },
        message:
          `${partner}: ${step} is refused: a guard acted, and no step forward is taken before ${until}. ${finding} ` +
          'Mend the cause first, or take schools off V3 with --never; to take the step all the same, add --despite-hold.',
      }
    }
    case 'pending':
      return {
        word: 'pending',
        details: { pending: pendingToJson(outcome.pending) },
        message: `${partner}: another change is pending: ${describePending(outcome.pending)}. markbridge rollout back drops it.`,
      }
    case 'stale':
    case 'forward':
    case 'gone':
      return {
        word: 'stale',
        message: `${partner}: the stage was changed meanwhile, or the change has expired; nothing was done. See markbridge rollout history ${partner}.`,
      }
    case 'interrupted':
      return { word: 'withdrawn', message: `${partner}: ${step} was withdrawn. Nothing has changed.` }
    case 'own':
      return {
        word: 'forbidden',
        message: `${partner}: the operator who proposed a step cannot approve it.`,
      }
    case 'refused':
    case 'forbidden':
      return { word: outcome.kind, message: `${partner}: ${outcome.message}` }
  }
}

/** `waiting for 1 of 2 instances to drain: instance 4 (3 writes)` */
export function formatWaiting(waiting: readonly WaitedFor[], live: number): string {
  const texts = waiting.map(
    ({ instance, writes }) =>
      `instance ${instance} (${writes === undefined ? 'no answer yet' : formatWrites(writes)})`,
  )
  return `waiting for ${waiting.length} of ${live} instance${live === 1 ? '' : 's'} to drain: ${texts.join(', ')}`
}

const formatWrites = (writes: number): string => `${writes} write${writes === 1 ? '' : 's'}`

/** `12 min 5 s` */
function formatLeft(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1_000))
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
