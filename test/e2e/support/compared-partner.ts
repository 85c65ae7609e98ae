import { vi } from 'vitest'

import type { ComparedExchange } from '../../../src/compare/live/exchange.ts'
import { readSamples } from '../../support/read-samples.ts'
import { type Adapter, startAdapter } from '../../support/start-adapter.ts'
import { journalFile } from './journal-file.ts'

export interface ComparedPartner {
  readonly adapter: Adapter
  readonly compared: ComparedExchange[]
  /** Returns the comparison counters that are not 0, by name and by labels without the partner. */
  counts: () => Promise<Record<string, number>>
  /** Resolves with the counters once at least this many checks have ended, and as many as were offered. Rejects after a minute. */
  settled: (checks: number) => Promise<Record<string, number>>
}

/** Starts the adapter with one partner, `acme`, which matches every client. */
export async function startCompared(
  v2: string,
  v3: string,
  partner: object = {},
  settings: object = {},
): Promise<ComparedPartner> {
  const compared: ComparedExchange[] = []
  const adapter = await startAdapter(
    v3,
    {
      v2: { baseUrl: v2 },
      partners: [{ id: 'acme', match: { any: true }, clients: 'open', stage: 'shadow', ...partner }],
      journal: journalFile(),
      ...settings,
    },
    { onCompared: (exchange) => compared.push(exchange) },
  )
  const counts = async (): Promise<Record<string, number>> => {
    const found: Record<string, number> = {}
    for (const [name, value] of await readSamples(adapter)) {
      const [, what = '', labels = ''] =
        /^markbridge_compare_(offered|compared|dropped|skipped|records|calls)_total\{partner="acme",(.*)\}$/.exec(
          name,
        ) ?? []
      const words = [...labels.matchAll(/="([^"]*)"/g)].map(([, word]) => word)
      if (what !== '' && value > 0) found[[what, ...words].join(' ')] = value
    }
    return found
  }
  return {
    adapter,
    compared,
    counts,
    settled: (checks) =>
      vi.waitFor(
        async () => {
          const found = await counts()
          const sum = (name: string): number =>
            Object.entries(found).reduce((all, [key, value]) => (key.startsWith(name) ? all + value : all), 0)
          const ended = sum('compared') + sum('dropped') + sum('skipped')
          if (ended < checks || ended !== sum('offered')) throw new Error(JSON.stringify(found))
          // Reads the counters again: the first page was built in several turns of the event loop, so it may lack a newer counter.
          return counts()
        },
        { timeout: 60_000, interval: 20 },
      ),
  }
}
