import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import type { Answer, WriteHistory } from '../load/history.ts'
import type { Face, Forward } from '../proxy/forwards.ts'

/**
 * What went wrong with a write: told created but never recorded (`lost`); recorded more than once (`doubled`),
 * unless V2 alone did so as often as its client sent it; told what is
 * not so (`falseAnswer`); recorded after a newer write of the same learner and session (`order`); without a final answer at
 * the end (`unsettled`); recorded but never sent, or with other values (`stranger`); answered otherwise the second time
 * (`changedReply`); sent to the service with the token of another client (`lent`). Or with the journal as a whole: its totals are wrong (`ledger`), or it was used although it was damaged
 * (`trusted`).
 */
export const findingKinds = [
  'lost', 'doubled', 'falseAnswer', 'order', 'unsettled', 'stranger', 'changedReply', 'lent', 'ledger', 'trusted',
] as const // prettier-ignore

export interface Finding {
  readonly kind: (typeof findingKinds)[number]
  /** Name of the write; of a batch `batch <number>`. */
  readonly of: string
  readonly because: string
  /** Name of the other write that it is about. */
  readonly against?: string
  /** What happened to the write, in order, and to the other one. */
  readonly story?: string
}

/** A write that the service recorded. */
export interface Recorded {
  readonly own: WriteHistory
  readonly effects: readonly EffectEntry[]
  /** The requests with it that went to the service; undefined where nobody watched them. */
  readonly forwards: readonly Forward[] | undefined
}

/** Describes what happened to a write, in the order of the run: when it was sent, forwarded to the service and answered. */
export function tellStory({ own, effects, forwards = [] }: Recorded): string {
  const { write, batch, position, sends, answers } = own
  const steps: [at: number, text: string][] = [
    ...sends.map((at): [number, string] => [at, 'sent']),
    ...forwards.map(({ at, status, face }): [number, string] => [
      at,
      `forwarded${nameOf(face)} (${status ?? 'no answer'})`,
    ]),
    ...answers.map(({ at, answer }): [number, string] => [at, `answered ${describe(answer)}`]),
  ]
  const inOrder = steps.toSorted(([one], [other]) => one - other).map(([at, text]) => `${at} ${text}`)
  const key = `learner ${write.learner.slice(-6)}, event ${write.event.slice(-6)}`
  const recorded = effects.map(({ seq, face }) => `${seq}${nameOf(face)}`).join(', ')
  return `batch ${batch} record ${position}, ${key}: ${inOrder.join('; ')}; effects: ${recorded}`
}

function nameOf(face: Face | undefined): string {
  return face === 'V2' ? ' to V2' : ''
}

function describe(answer: Answer): string {
  return answer.kind === 'refused' ? `refused ${answer.status}` : answer.kind
}
