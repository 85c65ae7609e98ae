import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { type Answer, type CreatedMark, holdsOutcome, isFinalAnswer } from '../load/history.ts'
import { nameIn, type Write } from '../load/write.ts'
import type { Forward } from '../proxy/forwards.ts'
import type { Finding, Recorded } from './finding.ts'

/** The facts about a write, and about other writes of the same learner and session, that decide which answers are true. */
interface Excuses {
  readonly mayBeRefused: boolean
  /** True if the service recorded another write of the same learner and session that is not older. */
  readonly wasOvertaken: boolean
  /** True if the service stores other values than it receives. */
  readonly alters: boolean
}

/** Checks every answer to a client about one write. Returns at most one finding, for the first false answer. */
export function checkAnswers(recorded: Recorded, excuses: Excuses): Finding[] {
  const { own, effects } = recorded
  const { write, answers } = own
  const outcomes = answers.map(({ answer }) => answer).filter(holdsOutcome)
  const because =
    outcomes
      .map((answer) => checkAnswer(write, answer, effects, excuses))
      .find((fault) => fault !== undefined) ??
    checkSequence(outcomes, effects) ??
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
    if (!write.valid) return 'answered created, but the service knows no such code'
    return checkMark(write, answer.mark, effects, alters)
  }
  if (answer.kind === 'superseded') {
    if (effects.length > 0) return 'answered superseded, but recorded'
    return wasOvertaken ? undefined : 'answered superseded, but no newer one was recorded'
  }
  if (answer.kind !== 'refused') return undefined
  if (effects.length > 0) return `answered ${answer.status}, but recorded`
  return mayBeRefused ? undefined : `answered ${answer.status}, but nothing is wrong with it`
}

function checkMark(
  write: Write,
  mark: CreatedMark,
  effects: readonly EffectEntry[],
  alters: boolean,
): string | undefined {
  const isOwn = alters ? isMadeOf(mark.comment, write.comment) : mark.comment === write.comment
  if (!isOwn || nameIn(mark.comment) !== write.name)
    return `answered created with the record of ${String(mark.comment)}`
  const altered = (['learner', 'event', 'code'] as const).filter((name) => mark[name] !== write[name])
  if (altered.length > 0) return `answered created with another ${altered.join(', ')}`
  const ids = effects.map(({ externalId }) => externalId)
  if (ids.length === 0 || ids.some((id) => id === mark.externalId)) return undefined
  return 'answered created with an id that it does not have'
}

/** Checks that no different answer follows a final answer, and that a write whose last answer is "not applied" was not recorded. */
function checkSequence(outcomes: readonly Answer[], effects: readonly EffectEntry[]): string | undefined {
  const final = outcomes.findIndex(isFinalAnswer)
  const later =
    final < 0 ? undefined : outcomes.slice(final).find(({ kind }) => kind !== outcomes[final]?.kind)
  if (later !== undefined) return `answered ${outcomes[final]?.kind ?? ''} and then ${later.kind}`
  if (outcomes.at(-1)?.kind === 'notApplied' && effects.length > 0)
    return 'answered not applied, but recorded'
  return undefined
}

/**
 * Checks what the answers claim about time. "Not applied" claims that the service does not have the write, and will not have it before the
 * client resends it. The rejection of a whole request claims the same if no earlier request contained the write. "Created" claims that the
 * service already has the write.
 */
function checkTimes({ own: { answers, sends }, effects, forwards }: Recorded): string | undefined {
  if (forwards === undefined || effects.length === 0) return undefined
  const applied = appliedBy(forwards)
  for (const { at, answer } of answers) {
    const nextSend = sends.find((sent) => sent > at) ?? Infinity
    const isFirst = (sends[1] ?? Infinity) > at
    if (answer.kind === 'created' && applied.every((forward) => forward.at > at)) {
      return 'answered created before it was sent to the service'
    }
    if (answer.kind !== 'notApplied' && !(answer.kind === 'busy' && isFirst)) continue
    if (applied.every((forward) => forward.at < at)) return 'answered not applied, but the service had it'
    if (applied.every((forward) => forward.at < nextSend)) {
      return 'answered not applied, then applied without its client'
    }
  }
  return undefined
}

/** Returns the requests that may have applied a write: the accepted requests, or the unanswered requests if none was accepted. */
function appliedBy(forwards: readonly Forward[]): readonly Forward[] {
  const accepted = forwards.filter(({ status }) => status !== undefined && status < 300)
  return accepted.length > 0 ? accepted : forwards.filter(({ status }) => status === undefined)
}

/** Returns true if a service may have made the text from the comment by trimming, normalising or cutting. */
function isMadeOf(text: unknown, comment: string): boolean {
  return typeof text === 'string' && normalForm(comment).startsWith(normalForm(text))
}

function normalForm(text: string): string {
  return text.normalize('NFC').replaceAll(/\s+/g, ' ').trim()
}
