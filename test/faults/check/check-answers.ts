import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { type Answer, type CreatedMark, holdsOutcome, isFinalAnswer } from '../load/history.ts'
import { nameIn, type Write } from '../load/write.ts'
import type { Forward } from '../proxy/forwards.ts'
import type { Finding, Recorded } from './finding.ts'

/** What may be said of a write because of itself and of others of the same learner and session. */
interface Excuses {
  readonly mayBeRefused: boolean
  /** A newer one was recorded. */
  readonly wasOvertaken: boolean
  /** The service alters values. */
  readonly alters: boolean
}

/** Checks everything that a client was told about one write; each falsehood is told once, the first of them. */
export function checkAnswers(recorded: Recorded, excuses: Excuses): Finding[] {
  const { own, effects } = recorded
  const { write, answers } = own
  const told = answers.map(({ answer }) => answer).filter(holdsOutcome)
  const because =
    told.map((answer) => checkAnswer(write, answer, effects, excuses)).find((fault) => fault !== undefined) ??
    checkSequence(told, effects) ??
    checkTimes(recorded)
  return because === undefined ? [] : [{ kind: 'falseAnswer', of: write.name, because }]
}

function checkAnswer(
  write: Write,
  answer: Answer,
  effects: readonly EffectEntry[],
  { mayBeRefused, wasOvertaken, alters }: Excuses,
): string | undefined {
  if (answer.kind === 'created') {
    if (!write.valid) return 'told created, but the service knows no such code'
    return checkMark(write, answer.mark, effects, alters)
  }
  if (answer.kind === 'superseded') {
    if (effects.length > 0) return 'told superseded, but recorded'
    return wasOvertaken ? undefined : 'told superseded, but no newer one was recorded'
  }
  if (answer.kind !== 'refused') return undefined
  if (effects.length > 0) return `told ${answer.status}, but recorded`
  return mayBeRefused ? undefined : `told ${answer.status}, but nothing is wrong with it`
}

function checkMark(
  write: Write,
  mark: CreatedMark,
  effects: readonly EffectEntry[],
  alters: boolean,
): string | undefined {
  const isOwn = alters ? isMadeOf(mark.comment, write.comment) : mark.comment === write.comment
  if (!isOwn || nameIn(mark.comment) !== write.name)
    return `told created with the record of ${String(mark.comment)}`
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

/**
 * "Not applied" says that the service has not got the write, and will not before its client sends it again; so does a request
 * that was turned away as a whole, if it was the first. "Created" says that the service has it already.
 */
function checkTimes({ own: { answers, sends }, effects, forwards }: Recorded): string | undefined {
  if (forwards === undefined || effects.length === 0) return undefined
  const applied = appliedBy(forwards)
  for (const { at, answer } of answers) {
    const nextSend = sends.find((sent) => sent > at) ?? Infinity
    const isFirst = (sends[1] ?? Infinity) > at
    if (answer.kind === 'created' && applied.every((forward) => forward.at > at)) {
      return 'told created before it was sent to the service'
    }
    if (answer.kind !== 'notApplied' && !(answer.kind === 'busy' && isFirst)) continue
    if (applied.every((forward) => forward.at < at)) return 'told not applied, but the service had it'
    if (applied.every((forward) => forward.at < nextSend)) {
      return 'told not applied, then applied without its client'
    }
  }
  return undefined
}

/** The requests that may have applied a write: those that were accepted; where none was, those that no answer came to. */
function appliedBy(forwards: readonly Forward[]): readonly Forward[] {
  const accepted = forwards.filter(({ status }) => status !== undefined && status < 300)
  return accepted.length > 0 ? accepted : forwards.filter(({ status }) => status === undefined)
}

/** True where a service may have made the text of the comment: trimmed, normalised or cut. */
function isMadeOf(text: unknown, comment: string): boolean {
  return typeof text === 'string' && normalForm(comment).startsWith(normalForm(text))
}

function normalForm(text: string): string {
  return text.normalize('NFC').replaceAll(/\s+/g, ' ').trim()
}
