import { toEntry } from '../../../src/compare/evidence/to-entry.ts'
import type { ComparedExchange, ComparedRecord } from '../../../src/compare/live/exchange.ts'
import type { EvidenceKeeper } from '../../../src/rollout/evidence/keep-evidence.ts'

/** Stores a compared or missed exchange as live comparison does. */
export function keepExchange(keeper: EvidenceKeeper, exchange: ComparedExchange): void {
  if (exchange.records.length === 0) keeper.miss(exchange, exchange)
  else
    keeper.add(exchange, {
      size: exchange.records.length,
      check: exchange,
      toEntry: (key) => toEntry(exchange, key),
    })
}

/** Returns the compared record of a learner on one day. Both sides have the same record. */
export function recordOf(learner: string, given: Partial<ComparedRecord> = {}): ComparedRecord {
  return {
    verdict: 'same',
    differences: [],
    equivalences: [],
    learner,
    day: '2026-11-02',
    code: '/',
    codeClass: 'code:present',
    traits: [],
    ...given,
  }
}

/** Returns a batch of the partner acme at `shadow` whose reply was compared. */
export function exchangeOf(
  records: readonly ComparedRecord[],
  given: Partial<ComparedExchange> = {},
): ComparedExchange {
  return {
    partner: 'acme',
    stage: 'shadow',
    revision: 3,
    served: 'v2',
    unit: 'school-1',
    kind: 'batch',
    check: 'reply',
    receivedMs: 0,
    records,
    delaysMs: [],
    ...given,
  }
}

export const differing: Partial<ComparedRecord> = {
  verdict: 'differs',
  differences: [
    { path: 'Comment', kind: 'value', v2Class: 'length:10-20', v3Class: 'length:1-10' },
    { path: 'Comment', kind: 'value', v2Class: 'length:10-20', v3Class: 'length:1-10' },
    { path: 'MinutesLate', kind: 'null', v2Class: 'number', v3Class: 'null' },
  ],
}
