import type { CheckKind } from '../../compare/compared-exchange.ts'
import type { CheckCount, ExchangeHead } from './messages.ts'

/** Counts checks, those of one kind together: partners, stages and kinds bound it. */
export interface CheckTally {
  add(exchange: ExchangeHead, check: CheckKind, times: number): void
  subtract(counts: readonly CheckCount[]): void
  /** What was counted; the tally is empty then. */
  take(): readonly CheckCount[]
}

/** Creates an empty tally. */
export function createCheckTally(): CheckTally {
  const counts = new Map<string, CheckCount>()
  const add = (exchange: ExchangeHead, check: CheckKind, times: number): void => {
    const { partner, stage, revision, kind } = exchange
    const name = [check, stage, revision, kind, partner].join(' ')
    const sum = (counts.get(name)?.times ?? 0) + times
    if (sum > 0) counts.set(name, { exchange, check, times: sum })
    else counts.delete(name)
  }
  return {
    add,
    subtract: (given) => {
      for (const { exchange, check, times } of given) add(exchange, check, -times)
    },
    take: () => {
      const taken = [...counts.values()]
      counts.clear()
      return taken
    },
  }
}
