import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { type History, isFinal, type WriteHistory } from '../load/history.ts'
import { nameIn } from '../load/write.ts'
import type { Forward } from '../proxy/forwards.ts'
import { checkAnswers } from './check-answers.ts'
import { checkOrder, createRivals, isAsOftenAsSent, type Rivals } from './check-order.ts'
import { type Finding, type Recorded, describeEvents } from './finding.ts'

export interface CheckContext {
  /** True if the service refuses a second mark for the same learner and session. Such a refusal is correct if another mark exists. */
  readonly oneMark?: boolean
  /** True if the service stores other values than it received, so that an answer may contain an altered comment. */
  readonly alters?: boolean
  /** The requests that reached the service, by the name of the write in them. `undefined` if the run did not watch the requests. */
  readonly forwards?: ReadonlyMap<string, readonly Forward[]>
}

export interface Checked {
  readonly findings: readonly Finding[]
  /** The number of writes that a newer write replaced: they were answered "superseded", or never got a final answer. */
  readonly overtaken: number
  /** The number of writes that V2 applied again over a newer write of V3, because their clients resent them (`checkOrder`). */
  readonly repeated: number
}

/** Compares the answers that the clients got with the effects that the service recorded. Returns a finding for each contradiction. */
export function checkHistory(
  history: History,
  effects: readonly EffectEntry[],
  { oneMark = false, alters = false, forwards }: CheckContext = {},
): Checked {
  const effectsOf = Map.groupBy(effects, ({ comment }) => nameIn(comment) ?? '')
  const { writes } = history
  const all = writes.map((own): Recorded => {
    const { name } = own.write
    return { own, effects: effectsOf.get(name) ?? [], forwards: forwards && (forwards.get(name) ?? []) }
  })
  const rivals = createRivals(all)
  const order = checkOrder(all)
  const changed = (of: string, because: string): Finding => ({ kind: 'changedReply', of, because })
  const findings = [
    ...all.flatMap(checkCount),
    ...all.flatMap((recorded) => checkEnd(recorded, rivals)),
    ...all.flatMap((recorded) => {
      const { own } = recorded
      const mayBeRefused = !own.write.valid || (oneMark && rivals.wasMarked(own))
      return checkAnswers(recorded, { mayBeRefused, wasOvertaken: rivals.wasOvertaken(own), alters })
    }),
    ...all.flatMap(checkToken),
    ...order.findings,
    ...checkStrangers(writes, effects),
    ...history.changedReplays.map((batch) =>
      changed(`batch ${batch}`, 'the finished batch was answered again with other bytes'),
    ),
    ...history.missingReplays.map((batch) =>
      changed(`batch ${batch}`, 'the finished batch was not answered again although there were no faults'),
    ),
    ...history.changedParts.map(({ name, first, later }) =>
      changed(name, `its final answer returned with other bytes: ${describeChange(first, later)}`),
    ),
  ]
  const overtaken = writes.filter((own) => (isFinal(own) ? isToldSuperseded(own) : rivals.wasOvertaken(own)))
  const byName = new Map(all.map((recorded) => [recorded.own.write.name, recorded]))
  const withStories = findings.map((finding): Finding => {
    const about = [finding.of, finding.against].flatMap((name) => byName.get(name ?? '') ?? [])
    return about.length === 0 ? finding : { ...finding, story: about.map(describeEvents).join('\n    ') }
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

function checkCount(recorded: Recorded): Finding[] {
  const { own, effects } = recorded
  const { name: of } = own.write
  const created = own.answers.some(({ answer }) => answer.kind === 'created')
  const findings: Finding[] = []
  if (created && effects.length === 0) {
    findings.push({ kind: 'lost', of, because: 'answered created, but never recorded' })
  }
  if (effects.length > 1 && !isAsOftenAsSent(recorded)) {
    const seqs = effects.map(({ seq, face }) => (face === 'V2' ? `${seq} of V2` : String(seq))).join(', ')
    findings.push({ kind: 'doubled', of, because: `recorded as effects ${seqs}` })
  }
  return findings
}

function checkEnd({ own, effects }: Recorded, { wasOvertaken }: Rivals): Finding[] {
  const { name: of } = own.write
  const last = own.answers.at(-1)?.answer.kind ?? 'nothing'
  // This write may stay "unknown": the service shows only the newer mark, so the adapter cannot find out whether this write was applied.
  if (isFinal(own) || own.isAbandoned === true || (last === 'unknown' && wasOvertaken(own))) return []
  return [{ kind: 'unsettled', of, because: `last answer ${last}, recorded ${effects.length} times` }]
}

/** Checks that writes of a client reach the service only with the client's own token. */
function checkToken({ own: { write, token }, forwards = [] }: Recorded): Finding[] {
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
