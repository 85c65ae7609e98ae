import { countsOf, type KeptEvidence } from '../../rollout/index.ts'
import type { RunDocument } from '../run-document.ts'
import { type Counted, delayBounds, toDocument } from '../tally.ts'

/** Whether anything of live comparison is among the evidence. */
export function isCompared({ counts }: KeptEvidence): boolean {
  return countsOf(counts, 'exchange').length > 0
}

/** Groups of evidence that a run counts in the same way, and what it calls them. */
const sections = [
  ['difference', 'difference'],
  ['rule', 'equivalence'],
  ['codeClass', 'codeClass'],
  ['comparedOn', 'day'],
] as const

/**
 * Evidence as the document of a run of the kind `live`. `skipped` counts requests, whose records are not known: those that were sampled and
 * not compared. Repeated requests count once. A rule of the partner's own shows among the equivalences, by its name.
 */
export function toRunDocument({ scope, counts, sinceMs, lastMs }: KeptEvidence): RunDocument {
  const { partner, stage, revision } = scope
  const verdicts = countsOf(counts, 'verdict').map(
    ({ fields: [kind = '', check = '', verdict = ''], count }): Counted => [
      'verdict',
      [`${kind}/${check}`, verdict],
      count,
    ],
  )
  const missed = countsOf(counts, 'exchange')
    .filter(({ fields }) => fields[2] === 'missed')
    .map(({ count }): Counted => ['skipped', [], count])
  const others = sections.flatMap(([group, section]) =>
    countsOf(counts, group).map(({ fields, count }): Counted => [section, fields, count]),
  )
  const delays = new Map(countsOf(counts, 'delay').map(({ fields, count }) => [fields[0], count]))
  const allDelays = delayBounds.map((upToMs): Counted => {
    const upTo = String(upToMs)
    return ['delay', [upTo], delays.get(upTo) ?? 0]
  })
  return toDocument(
    {
      ...{ run: `live-${partner}-${stage}-${revision}`, kind: 'live', partner, complete: true },
      startedAt: new Date(sinceMs).toISOString(),
      endedAt: new Date(lastMs).toISOString(),
      noise: false,
    },
    [...verdicts, ...missed, ...others, ...(delays.size === 0 ? [] : allDelays)],
  )
}
