import type { EffectEntry } from '../../../src/sandbox/control/effects.ts'
import { type Answer, type CreatedMark, isFinalAnswer, type WriteHistory } from '../load/history.ts'
import type { Write } from '../load/write.ts'
import type { Finding } from './check-history.ts'

/** What may be said of a write because of itself and of others of the same learner and session. */
export interface Excuses {
  readonly mayBeRefused: boolean
  /** A newer one was recorded. */
  readonly wasOvertaken: boolean
}

/** Checks everything that a client was told about one write; each falsehood is told once, the first of them. */
export function checkAnswers(
  { write, answers }: WriteHistory,
  effects: readonly EffectEntry[],
  excuses: Excuses,
): Finding[] {
  const told = answers.map(({ answer }) => answer).filter(({ kind }) => kind !== 'busy')
  const because =
    told.map((answer) => checkAnswer(write, answer, effects, excuses)).find((fault) => fault !== undefined) ??
    checkSequence(told, effects)
  return because === undefined ? [] : [{ kind: 'falseAnswer', of: write.name, because }]
}

function checkAnswer(
  write: Write,
  answer: Answer,
  effects: readonly EffectEntry[],
  { mayBeRefused, wasOvertaken }: Excuses,
): string | undefined {
  if (answer.kind === 'created') {
    if (!write.valid) return 'told created, but the service knows no such code'
    return checkMark(write, answer.mark, effects)
  }
  if (answer.kind === 'superseded') {
    if (effects.length > 0) return 'told superseded, but recorded'
    return wasOvertaken ? undefined : 'told superseded, but no newer one was recorded'
  }
  if (answer.kind !== 'refused') return undefined
  if (effects.length > 0) return `told ${answer.status}, but recorded`
  return mayBeRefused ? undefined : `told ${answer.status}, but nothing is wrong with it`
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
