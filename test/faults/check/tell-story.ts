import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import type { Answer, WriteHistory } from '../load/history.ts'
import type { Face, Forward } from '../proxy/forwards.ts'

/** Describes what happened to a write, in the order of the run: when it was sent, forwarded to the service and answered. */
export function tellStory(
  { write, batch, position, sends, answers }: WriteHistory,
  effects: readonly EffectEntry[],
  forwards: readonly Forward[],
): string {
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
