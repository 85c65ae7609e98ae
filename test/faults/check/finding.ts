import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import type { Answer, WriteHistory } from '../load/history.ts'
import type { Face, Forward } from '../proxy/forwards.ts'

/**
 * A fault of a write: `lost` (answered "created" but never recorded); `doubled` (recorded more than once, unless V2 alone did so as often
 * as its client sent the write); `falseAnswer` (an answer that is not true); `order` (recorded after a newer write of the same learner and
 * session); `unsettled` (no final answer at the end); `stranger` (recorded but never sent, or with other values); `changedReply` (answered
 * differently the second time); `lent` (sent to the service with the token of another client). Or a fault of the whole journal: `ledger`
 * (its totals are wrong), or `trusted` (it was used although it was damaged).
 */
export const findingKinds = [
  'lost', 'doubled', 'falseAnswer', 'order', 'unsettled', 'stranger', 'changedReply', 'lent', 'ledger', 'trusted',
] as const // prettier-ignore

export interface Finding {
  readonly kind: (typeof findingKinds)[number]
  /** The name of the write. A batch is named `batch <number>`. */
  readonly of: string
  readonly because: string
  /** The name of the other write that the finding concerns. */
  readonly against?: string
  /** The events of the write and of the other write, in order. */
  readonly story?: string
}

/** A write with its effects on the service, of which there may be none. */
export interface Recorded {
  readonly own: WriteHistory
  readonly effects: readonly EffectEntry[]
  /** The requests with this write that reached the service, or `undefined` if nothing watched them. */
  readonly forwards: readonly Forward[] | undefined
}

/** Describes the events of a write in the order of the run: when it was sent, forwarded to the service and answered. */
export function describeEvents({ own, effects, forwards = [] }: Recorded): string {
  const { write, batch, position, sends, answers } = own
  const steps: [at: number, text: string][] = [
    ...sends.map((at): [number, string] => [at, 'sent']),
    ...forwards.map(({ at, status, face }): [number, string] => [
      at,
      `forwarded${describeFace(face)} (${status ?? 'no answer'})`,
    ]),
    ...answers.map(({ at, answer }): [number, string] => [at, `answered ${describe(answer)}`]),
  ]
  const inOrder = steps.toSorted(([one], [other]) => one - other).map(([at, text]) => `${at} ${text}`)
  const key = `learner ${write.learner.slice(-6)}, event ${write.event.slice(-6)}`
  const recorded = effects.map(({ seq, face }) => `${seq}${describeFace(face)}`).join(', ')
  return `batch ${batch} record ${position}, ${key}: ${inOrder.join('; ')}; effects: ${recorded}`
}

function describeFace(face: Face | undefined): string {
  return face === 'V2' ? ' to V2' : ''
}

function describe(answer: Answer): string {
  return answer.kind === 'refused' ? `refused ${answer.status}` : answer.kind
}
