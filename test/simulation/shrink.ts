import type { Finding } from './sent.ts'
import { type HistoryResult, runHistory } from './history.ts'
import type { Scale } from './swarm.ts'

/**
 * Removes faults, instances, clients, schools, keys, batches and records from a history while it still has a finding of the same kind.
 * Returns the result of the smallest history, with its log.
 */
export async function shrink(failed: HistoryResult): Promise<HistoryResult> {
  const { seed } = failed
  const kinds = new Set(failed.findings.map(({ kind }) => kind))
  const shows = async (scale: Scale): Promise<boolean> =>
    (await runHistory(seed, { scale })).findings.some(({ kind }: Finding) => kinds.has(kind))
  let { scale } = failed
  for (let isSmaller = true; isSmaller;) {
    isSmaller = false
    for (const candidate of candidates(scale)) {
      if (!(await shows(candidate))) continue
      scale = candidate
      isSmaller = true
      break
    }
  }
  return runHistory(seed, { scale, isTold: true })
}

function* candidates(scale: Scale): Generator<Scale> {
  for (const fault of scale.faults)
    yield { ...scale, faults: new Set([...scale.faults].filter((one) => one !== fault)) }
  for (const name of ['instances', 'clients', 'schools', 'keys', 'batchesPerClient', 'maxRecords'] as const)
    if (scale[name] > 1) yield { ...scale, [name]: scale[name] - 1 }
}
