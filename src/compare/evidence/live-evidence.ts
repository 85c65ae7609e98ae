import type { Clock } from '../../clock.ts'
import { createPeriodicTask } from '../../clock/periodic-task.ts'
import { AdapterError } from '../../errors.ts'
import {
  type EvidenceEntry,
  type EvidenceScope,
  type EvidenceStore,
  type PeriodKey,
  toEvidenceKey,
} from '../../rollout/index.ts'
import type { ComparedExchange, OnCompared } from '../compared-exchange.ts'
import { countName } from './count-name.ts'
import { toEntry } from './to-entry.ts'

/** Takes what live comparison finds to the journal, in groups. */
export interface LiveEvidence {
  readonly compared: OnCompared
  start(): void
  /** Keeps what is left, and ends. */
  stop(): Promise<void>
}

export interface LiveEvidenceOptions {
  readonly store: Pick<EvidenceStore, 'add'> & { readonly key: (scope: EvidenceScope) => Promise<PeriodKey> }
  readonly clock: Pick<Clock, 'after'>
  /** Evidence could not be kept: its exchanges count as missed. Reported once until it can again. */
  readonly onFailure: (partner: string, code: string) => void
  /** Called with exchanges that were kept, or lost. */
  readonly onKept: (partner: string, exchanges: readonly ComparedExchange[], isKept: boolean) => void
}

/** Between two groups; also how old ids in memory get, ms. */
const EVERY_MS = 5_000
const STOP_MS = 1_000
/** Records that wait for their group; more count as missed. */
const MAX_WAITING = 20_000
/** Exchanges without records that wait for their group; more count as missed at once. */
const MAX_EMPTY = 10_000
/** Records of one transaction: the journal has its turn in between. */
const MAX_TOGETHER = 500

interface Waiting {
  readonly scope: EvidenceScope
  readonly exchanges: ComparedExchange[]
  /** Exchanges that are lost; kept as missed. */
  missed: Map<string, number>
}

/** Creates the evidence of one instance, which is added to that of all instances. */
export function createLiveEvidence({ store, clock, onFailure, onKept }: LiveEvidenceOptions): LiveEvidence {
  let waiting = new Map<string, Waiting>()
  let records = 0
  let empty = 0
  const failing = new Set<string>()
  const waitingOf = ({ partner, stage, revision }: EvidenceScope): Waiting => {
    const name = `${partner} ${stage} ${revision}`
    const known = waiting.get(name) ?? {
      scope: { partner, stage, revision },
      exchanges: [],
      missed: new Map(),
    }
    waiting.set(name, known)
    return known
  }
  const miss = (exchange: ComparedExchange): void => {
    const { missed } = waitingOf(exchange)
    const name = countName('exchange', exchange.kind, exchange.check, 'missed')
    missed.set(name, (missed.get(name) ?? 0) + 1)
  }
  const keepScope = async ({ scope, exchanges, missed }: Waiting): Promise<void> => {
    const { partner } = scope
    const left = [...exchanges]
    try {
      const key = toEvidenceKey(await store.key(scope))
      while (left.length > 0 || missed.size > 0) {
        const group = firstOf(left)
        const entries: EvidenceEntry[] = group.map((exchange) => toEntry(exchange, key))
        if (missed.size > 0) entries.push({ request: undefined, counts: missed, pairs: [] })
        // A period that has just ended; the next group begins another.
        if (!(await store.add(key, entries))) break
        missed = new Map()
        left.splice(0, group.length)
        if (group.length > 0) onKept(partner, group, true)
      }
      failing.delete(partner)
    } catch (cause) {
      if (!failing.has(partner))
        onFailure(partner, cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL')
      failing.add(partner)
    }
    if (left.length > 0) onKept(partner, left, false)
    // A commit whose reply was lost counts them both as compared and as missed: more has to be seen then, never less.
    for (const exchange of left) miss(exchange)
    const lost = waitingOf(scope).missed
    for (const [name, count] of missed) lost.set(name, (lost.get(name) ?? 0) + count)
  }
  const keep = async (): Promise<void> => {
    const taken = waiting
    waiting = new Map()
    records = 0
    empty = 0
    for (const one of taken.values()) await keepScope(one)
  }
  const keeping = createPeriodicTask({ clock, everyMs: EVERY_MS, stopMs: STOP_MS, act: keep })
  return {
    compared: (exchange) => {
      const isEmpty = exchange.records.length === 0
      if (records + exchange.records.length > MAX_WAITING || (isEmpty && empty >= MAX_EMPTY)) {
        miss(exchange)
        return
      }
      records += exchange.records.length
      if (isEmpty) empty += 1
      waitingOf(exchange).exchanges.push(exchange)
    },
    start: () => keeping.start(),
    stop: () => keeping.stop(),
  }
}

/** As many of the first as go into one transaction, and at least one. */
function firstOf(exchanges: readonly ComparedExchange[]): readonly ComparedExchange[] {
  let records = 0
  const end = exchanges.findIndex((exchange, at) => {
    records += exchange.records.length + 1
    return at > 0 && records > MAX_TOGETHER
  })
  return end === -1 ? exchanges.slice() : exchanges.slice(0, end)
}
