import type { EffectEntry } from '../../../src/sandbox/control/effects.ts'
import { type Answer, type CreatedMark, isFinalAnswer, type WriteHistory } from '../load/history.ts'
import type { Write } from '../load/write.ts'
import type { Finding } from './check-history.ts'

/**
 * Checks everything that a client was told about one write; each falsehood is told once, the first of them. `isOvertaken`:
 * whether a newer one of the same learner and session was recorded.
 */
export function checkAnswers(
  own: WriteHistory,
  effects: readonly EffectEntry[],
  isOvertaken: (own: WriteHistory) => boolean,
): Finding[] {
  const told = own.answers.map(({ answer }) => answer).filter(({ kind }) => kind !== 'busy')
  const because =
    told.map((answer) => checkAnswer(own.write, answer, effects)).find((fault) => fault !== undefined) ??
    checkSequence(told, effects) ??
    (told.some(({ kind }) => kind === 'superseded') && !isOvertaken(own)
      ? 'told superseded, but no newer one was recorded'
      : undefined)
  return because === undefined ? [] : [{ kind: 'falseAnswer', of: own.write.name, because }]
}

function checkAnswer(write: Write, answer: Answer, effects: readonly EffectEntry[]): string | undefined {
  if (answer.kind === 'created') {
    if (!write.valid) return 'told created, but the service knows no such code'
    return checkMark(write, answer.mark, effects)
  }
  if (answer.kind === 'superseded' && effects.length > 0) return 'told superseded, but recorded'
  if (answer.kind !== 'refused') return undefined
  if (effects.length > 0) return `told ${answer.status}, but recorded`
  return write.valid ? `told ${answer.status}, but nothing is wrong with it` : undefined
}

function checkMark(write: Write, mark: CreatedMark, effects: readonly EffectEntry[]): string | undefined {
  if (mark.comment !== write.name) return `told created with the record of ${String(mark.comment)}`
  const altered = (['learner', 'event', 'code'] as const).filter((name) => mark[name] !== write[name])
  if (altered.length > 0) return `told created with another ${altered.join(', ')}`
  const ids = effects.map(({ externalId }) => externalId)
  if (ids.length === 0 || ids.some((id) => id === mark.externalId)) return undefined
  return 'told created with an id that it does not have'
}

/** What was final stays so, and the last word on "not applied" must be true. */
function checkSequence(told: readonly Answer[], effects: readonly EffectEntry[]): string | undefined {
  const final = told.findIndex(isFinalAnswer)
  const later = final < 0 ? undefined : told.slice(final).find(({ kind }) => kind !== told[final]?.kind)
  if (later !== undefined) return `told ${told[final]?.kind ?? ''} and then ${later.kind}`
  if (told.at(-1)?.kind === 'notApplied' && effects.length > 0) return 'told not applied, but recorded'
  return undefined
}
