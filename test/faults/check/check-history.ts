import type { EffectEntry } from '../../../src/sandbox/control/effects.ts'
import { type History, isFinal, type WriteHistory } from '../load/history.ts'
import { checkAnswers } from './check-answers.ts'
import { checkOrder, createRivals, type Rivals } from './check-order.ts'

/**
 * What went wrong with a write: told created but never recorded (`lost`); recorded more than once (`doubled`); told what is
 * not so (`falseAnswer`); recorded after a newer write of the same learner and session (`order`); without a final answer at
 * the end (`unsettled`); recorded but never sent, or with other values (`stranger`); answered otherwise the second time
 * (`changedReply`). Or with the journal as a whole: its totals are wrong (`ledger`).
 */
export interface Finding {
  readonly kind:
    'lost' | 'doubled' | 'falseAnswer' | 'order' | 'unsettled' | 'stranger' | 'changedReply' | 'ledger'
  /** Name of the write; of a batch `batch <number>`. */
  readonly of: string
  readonly because: string
}

/** What a check found. */
export interface Checked {
  readonly findings: readonly Finding[]
  /** Writes that were not recorded, or not for long, since a newer one was: told so, or told unknown at last. */
  readonly overtaken: number
}

/**
 * Sets what the clients were told against what the service recorded. No finding: nothing lost, nothing doubled. `oneMark`: the
 * service refuses a second mark for the same learner and session, so that a refusal is true where there is another one.
 */
export function checkHistory(
  history: History,
  effects: readonly EffectEntry[],
  { oneMark = false }: { oneMark?: boolean } = {},
): Checked {
  const effectsOf = groupByName(effects)
  const { writes } = history
  const rivals = createRivals(writes, effectsOf)
  const findings = [
    ...writes.flatMap((own) => checkCount(own, effectsOf.get(own.write.name) ?? [])),
    ...writes.flatMap((own) => checkEnd(own, effectsOf.get(own.write.name) ?? [], rivals)),
    ...writes.flatMap((own) =>
      checkAnswers(own, effectsOf.get(own.write.name) ?? [], {
        mayBeRefused: !own.write.valid || (oneMark && rivals.wasMarked(own)),
        wasOvertaken: rivals.wasOvertaken(own),
      }),
    ),
    ...checkOrder(writes, effectsOf),
    ...checkStrangers(writes, effects),
    ...history.changedReplays.map((batch): Finding => ({
      kind: 'changedReply',
      of: `batch ${batch}`,
      because: 'the same batch, finished, was answered with other bytes',
    })),
  ]
  const overtaken = writes.filter((own) => (isFinal(own) ? isToldSuperseded(own) : rivals.wasOvertaken(own)))
  return { findings, overtaken: overtaken.length }
}

function groupByName(effects: readonly EffectEntry[]): Map<string, EffectEntry[]> {
  return Map.groupBy(effects, ({ comment }) => comment ?? '')
}

function checkCount(own: WriteHistory, effects: readonly EffectEntry[]): Finding[] {
  const { name: of } = own.write
  const created = own.answers.some(({ answer }) => answer.kind === 'created')
  const findings: Finding[] = []
  if (created && effects.length === 0) {
    findings.push({ kind: 'lost', of, because: 'told created, never recorded' })
  }
  if (effects.length > 1) {
    const seqs = effects.map(({ seq }) => seq).join(', ')
    findings.push({ kind: 'doubled', of, because: `recorded as effects ${seqs}` })
  }
  return findings
}

function checkEnd(own: WriteHistory, effects: readonly EffectEntry[], { wasOvertaken }: Rivals): Finding[] {
  const { name: of } = own.write
  const last = own.answers.at(-1)?.answer.kind ?? 'nothing'
  // What became of it cannot be seen any longer behind the newer one.
  if (isFinal(own) || (last === 'unknown' && wasOvertaken(own))) return []
  return [{ kind: 'unsettled', of, because: `told ${last} at last, recorded ${effects.length} times` }]
}

function checkStrangers(writes: readonly WriteHistory[], effects: readonly EffectEntry[]): Finding[] {
  const byName = new Map(writes.map(({ write }) => [write.name, write]))
  return effects.flatMap((effect): Finding[] => {
    const write = byName.get(effect.comment ?? '')
    const of = effect.comment ?? `effect ${effect.seq}`
    if (write === undefined) return [{ kind: 'stranger', of, because: 'recorded, but no client sent it' }]
    const names = ['learner', 'event', 'code', 'present', 'absent', 'minutesLate'] as const
    const altered = names.filter((name) => effect[name] !== write[name])
    if (altered.length === 0) return []
    return [{ kind: 'stranger', of, because: `recorded with another ${altered.join(', ')}` }]
  })
}

function isToldSuperseded({ answers }: WriteHistory): boolean {
  return answers.some(({ answer }) => answer.kind === 'superseded')
}
