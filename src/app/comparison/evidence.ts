import { backgroundClock } from '../../clock.ts'
import type { ComparedExchange } from '../../compare/compared-exchange.ts'
import { createLiveEvidence, type LiveEvidence } from '../../compare/evidence/index.ts'
import type { ComparedSeen } from '../../observability/compare-metrics.ts'
import { createCheckTally } from './check-tally.ts'
import { headOf, type Note } from './messages.ts'
import type { ThreadStores } from './thread-stores.ts'

/** Takes what is found to the journal, as evidence for the advice on the next step. Undefined: no journal is configured. */
export function createEvidence(
  store: ThreadStores['evidence'] | undefined,
  note: (note: Note) => void,
): LiveEvidence | undefined {
  return (
    store &&
    createLiveEvidence({
      store,
      clock: backgroundClock,
      onFailure: (partner, code) => note({ kind: 'evidenceNotKept', event: { partner, code } }),
      onKept: (partner, exchanges, isKept) => {
        const tally = createCheckTally()
        for (const exchange of exchanges) tally.add(headOf(exchange), exchange.check, 1)
        note({ kind: 'kept', partner, checks: tally.take(), isKept })
      },
    })
  )
}

/** What the metrics count of an exchange. */
export function toSeen({ partner, check, kind, records, delaysMs }: ComparedExchange): ComparedSeen {
  return {
    partner,
    check,
    kind,
    verdicts: countBy(records, ({ verdict }) => verdict),
    differences: countBy(
      records.flatMap(({ differences }) => differences),
      (found) => `${found.kind} ${found.path}`,
    ),
    delaysMs,
  }
}

function countBy<Item>(items: readonly Item[], nameOf: (item: Item) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) {
    const name = nameOf(item)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}
