import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { type History, isFinal, type WriteHistory } from '../load/history.ts'
import { nameIn } from '../load/write.ts'
import type { Forward } from '../proxy/forwards.ts'
import { checkAnswers } from './check-answers.ts'
import { checkOrder, createRivals, type Rivals } from './check-order.ts'
import { tellStory } from './tell-story.ts'
import { isAsOftenAsSent, type Recorded } from './v2-alone.ts'

/**
 * What went wrong with a write: told created but never recorded (`lost`); recorded more than once (`doubled`),
 * unless V2 alone did so as often as its client sent it; told what is
 * not so (`falseAnswer`); recorded after a newer write of the same learner and session (`order`); without a final answer at
 * the end (`unsettled`); recorded but never sent, or with other values (`stranger`); answered otherwise the second time
 * (`changedReply`); sent to the service with the token of another client (`lent`). Or with the journal as a whole: its totals are wrong (`ledger`), or it was used although it was damaged
 * (`trusted`).
 */
export interface Finding {
  readonly kind:
    | 'lost'
    | 'doubled'
    | 'falseAnswer'
    | 'order'
    | 'unsettled'
    | 'stranger'
    | 'changedReply'
    | 'lent'
    | 'ledger'
    | 'trusted'
  /** Name of the write; of a batch `batch <number>`. */
  readonly of: string
  readonly because: string
  /** Name of the other write that it is about. */
  readonly against?: string
  /** What happened to the write, in order, and to the other one. */
  readonly story?: string
}

/** What else is known of a run. */
export interface CheckContext {
  /** The service refuses a second mark for the same learner and session: a refusal is true where there is another one. */
  readonly oneMark?: boolean
  /** The service stores other values than it was sent: the comment in an answer may be what it makes of the one that was sent. */
  readonly alters?: boolean
  /** The requests with each write that went to the service; undefined where nobody watched them. */
  readonly forwards?: ReadonlyMap<string, readonly Forward[]>
}

/** What a check found. */
export interface Checked {
  readonly findings: readonly Finding[]
  /** Writes that were not recorded, or not for long, since a newer one was: told so, or told unknown at last. */
  readonly overtaken: number
  /** Writes that V2 alone was sent and applied again over a newer one of V3, as their clients wanted (`checkOrder`). */
  readonly repeated: number
}

/**
 * Sets what the clients were told against what the service recorded. No finding: nothing lost, nothing doubled.
 */
export function checkHistory(
  history: History,
  effects: readonly EffectEntry[],
  { oneMark = false, alters = false, forwards }: CheckContext = {},
): Checked {
  const effectsOf = groupByName(effects)
  const { writes } = history
  const rivals = createRivals(writes, effectsOf, forwards)
  const order = checkOrder(writes, effectsOf, forwards)
  const findings = [
    ...writes.flatMap((own) => {
      const { name } = own.write
      return checkCount({ own, effects: effectsOf.get(name) ?? [], forwards: forwards?.get(name) })
    }),
    ...writes.flatMap((own) => checkEnd(own, effectsOf.get(own.write.name) ?? [], rivals)),
    ...writes.flatMap((own) =>
      checkAnswers(own, effectsOf.get(own.write.name) ?? [], {
        mayBeRefused: !own.write.valid || (oneMark && rivals.wasMarked(own)),
        wasOvertaken: rivals.wasOvertaken(own),
        alters,
        forwards: forwards?.get(own.write.name) ?? (forwards === undefined ? undefined : []),
      }),
    ),
    ...writes.flatMap((own) => checkToken(own, forwards?.get(own.write.name) ?? [])),
    ...order.findings,
    ...checkStrangers(writes, effects),
    ...history.changedReplays.map((batch): Finding => ({
      kind: 'changedReply',
      of: `batch ${batch}`,
      because: 'the same batch, finished, was answered with other bytes',
    })),
    ...history.missingReplays.map((batch): Finding => ({
      kind: 'changedReply',
      of: `batch ${batch}`,
      because: 'the same batch, finished, was not answered again though nothing was broken',
    })),
    ...history.changedParts.map(({ name: of, first, later }): Finding => ({
      kind: 'changedReply',
      of,
      because: `its final answer came again with other bytes: ${describeChange(first, later)}`,
    })),
  ]
  const overtaken = writes.filter((own) => (isFinal(own) ? isToldSuperseded(own) : rivals.wasOvertaken(own)))
  const byName = new Map(writes.map((own) => [own.write.name, own]))
  const storyOf = (name: string | undefined): string[] => {
    const own = byName.get(name ?? '')
    if (own === undefined || name === undefined) return []
    return [tellStory(own, effectsOf.get(name) ?? [], forwards?.get(name) ?? [])]
  }
  const withStories = findings.map((finding): Finding => {
    const stories = [finding.of, finding.against].flatMap(storyOf)
    return stories.length === 0 ? finding : { ...finding, story: stories.join('\n    ') }
  })
  return { findings: withStories, overtaken: overtaken.length, repeated: order.repeated }
}

/** Quotes both texts around the first character that differs. */
function describeChange(first: string, later: string): string {
  let at = 0
  while (at < first.length && first[at] === later[at]) at += 1
  const quote = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - 30), at + 60))
  return `${quote(first)}, then ${quote(later)}`
}

function groupByName(effects: readonly EffectEntry[]): Map<string, EffectEntry[]> {
  return Map.groupBy(effects, ({ comment }) => nameIn(comment) ?? '')
}

function checkCount(recorded: Recorded): Finding[] {
  const { own, effects } = recorded
  const { name: of } = own.write
  const created = own.answers.some(({ answer }) => answer.kind === 'created')
  const findings: Finding[] = []
  if (created && effects.length === 0) {
    findings.push({ kind: 'lost', of, because: 'told created, never recorded' })
  }
  if (effects.length > 1 && !isAsOftenAsSent(recorded)) {
    const seqs = effects.map(({ seq, face }) => (face === 'V2' ? `${seq} of V2` : String(seq))).join(', ')
    findings.push({ kind: 'doubled', of, because: `recorded as effects ${seqs}` })
  }
  return findings
}

function checkEnd(own: WriteHistory, effects: readonly EffectEntry[], { wasOvertaken }: Rivals): Finding[] {
  const { name: of } = own.write
  const last = own.answers.at(-1)?.answer.kind ?? 'nothing'
  // What became of it cannot be seen any longer behind the newer one.
  if (isFinal(own) || own.isAbandoned === true || (last === 'unknown' && wasOvertaken(own))) return []
  return [{ kind: 'unsettled', of, because: `told ${last} at last, recorded ${effects.length} times` }]
}

/** What one client sent goes to the service with its own token only. */
function checkToken({ write, token }: WriteHistory, forwards: readonly Forward[]): Finding[] {
  const isLent = token !== undefined && forwards.some((forward) => forward.token !== token)
  return isLent ? [{ kind: 'lent', of: write.name, because: 'sent with the token of another client' }] : []
}

function checkStrangers(writes: readonly WriteHistory[], effects: readonly EffectEntry[]): Finding[] {
  const byName = new Map(writes.map(({ write }) => [write.name, write]))
  return effects.flatMap((effect): Finding[] => {
    const name = nameIn(effect.comment)
    const write = byName.get(name ?? '')
    const of = name ?? `effect ${effect.seq}`
    if (write === undefined) return [{ kind: 'stranger', of, because: 'recorded, but no client sent it' }]
    const names = ['learner', 'event', 'code', 'present', 'absent', 'minutesLate', 'comment'] as const
    const altered = names.filter((field) => effect[field] !== write[field])
    if (altered.length === 0) return []
    return [{ kind: 'stranger', of, because: `recorded with another ${altered.join(', ')}` }]
  })
}

function isToldSuperseded({ answers }: WriteHistory): boolean {
  return answers.some(({ answer }) => answer.kind === 'superseded')
}
