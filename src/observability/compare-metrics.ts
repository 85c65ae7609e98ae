import type { Instruments } from './instruments.ts'

/** A live exchange whose check has ended with a result. */
export interface ComparedSeen {
  readonly partner: string
  readonly check: string
  /** Of the request. */
  readonly kind: string
  /** Records by verdict. */
  readonly verdicts: ReadonlyMap<string, number>
  /** Differences by `<kind> <path>`. */
  readonly differences: ReadonlyMap<string, number>
  readonly delaysMs: readonly number[]
}

const checks = ['reply', 'visible', 'readBack', 'answers']
const skipReasons = ['tooLarge', 'encoding', 'form', 'refused', 'empty', 'superseded', 'nextLink', 'paged', 'unordered', 'silence', 'pace', 'stopped', 'failed'] // prettier-ignore

/** Paths name fields of the service; with more of them the rest are one. */
const MAX_PATHS = 150

/** Creates the metrics of live comparisons; offered = compared + dropped + skipped once nothing waits. */
export function createCompareMetrics({ counter, histogram }: Instruments) {
  const offered = counter('compare_offered_total', 'Checks of sampled exchanges: compared + dropped + skipped.', ['partner', 'check'], { check: checks }) // prettier-ignore
  const compared = counter('compare_compared_total', 'Checks with a result.', ['partner', 'check'], {
    check: checks,
  })
  const dropped = counter('compare_dropped_total', 'Checks that found no room.', ['partner', 'check', 'reason'], { check: checks, reason: ['full', 'closed'] }) // prettier-ignore
  const skipped = counter('compare_skipped_total', 'Checks that could not be made.', ['partner', 'check', 'reason'], { check: checks, reason: skipReasons }) // prettier-ignore
  const records = counter('compare_records_total', 'Compared records by verdict.', ['partner', 'check', 'kind', 'verdict']) // prettier-ignore
  const differences = counter('compare_differences_total', 'Fields that differ.', ['partner', 'check', 'path', 'kind']) // prettier-ignore
  const delays = histogram('compare_visible', 'From a reply to the read that showed the mark on the other side.', ['partner', 'check']) // prettier-ignore
  const calls = counter('compare_calls_total', 'Calls of comparisons.', ['partner', 'side', 'status'])
  const paths = new Set<string>()
  const labelOf = (path: string): string => {
    if (paths.has(path)) return path
    if (paths.size >= MAX_PATHS) return '(other)'
    paths.add(path)
    return path
  }
  return {
    offered: (partner: string, check: string): void => offered.inc({ partner, check }),
    compared: ({ partner, check, kind, verdicts, differences: found, delaysMs }: ComparedSeen): void => {
      compared.inc({ partner, check })
      for (const [verdict, count] of verdicts) records.inc({ partner, check, kind, verdict }, count)
      for (const [name, count] of found) {
        const at = name.indexOf(' ')
        differences.inc({ partner, check, path: labelOf(name.slice(at + 1)), kind: name.slice(0, at) }, count)
      }
      for (const ms of delaysMs) delays.observe({ partner, check }, ms / 1_000)
    },
    dropped: (partner: string, check: string, reason: string): void =>
      dropped.inc({ partner, check, reason }),
    skipped: (partner: string, check: string, reason: string): void =>
      skipped.inc({ partner, check, reason }),
    called: (partner: string, side: 'v2' | 'v3', status: string): void =>
      calls.inc({ partner, side, status }),
  }
}
