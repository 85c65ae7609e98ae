import { countsOf, type KeptEvidence } from '../../rollout/index.ts'
import type { RunDocument } from '../run-document.ts'
import { createTally, delayBounds } from '../tally.ts'
import type { TallyState } from '../tally-state.ts'
import { differenceKinds, type Verdict, verdicts } from '../verdict.ts'
import { noVerdicts } from '../verdict-groups.ts'

/** Whether anything of live comparison is among the evidence. */
export function isCompared({ counts }: KeptEvidence): boolean {
  return countsOf(counts, 'exchange').length > 0
}

/**
 * Evidence as the document of a run of the kind `live`. `skipped` counts requests, whose records are not known: those that were sampled and
 * not compared. Repeated requests count once. A rule of the partner's own shows among the equivalences, by its name.
 */
export function toRunDocument(kept: KeptEvidence): RunDocument {
  const { partner, stage, revision } = kept.scope
  const state = toState(kept)
  const tally = createTally()
  tally.merge(state)
  const since = new Date(kept.sinceMs).toISOString()
  const days = state.days.map(([day]) => day).sort()
  return tally.toDocument({
    run: `live-${partner}-${stage}-${revision}`,
    kind: 'live',
    partner,
    startedAt: since,
    endedAt: new Date(kept.lastMs).toISOString(),
    from: days[0] ?? since.slice(0, 10),
    to: days.at(-1) ?? since.slice(0, 10),
    complete: true,
  })
}

function toState({ counts }: KeptEvidence): TallyState {
  const total = noVerdicts()
  const groupsOf = (
    group: 'verdict' | 'comparedOn' | 'codeClass',
    nameOf: (fields: readonly string[]) => string,
  ): TallyState['kinds'] => {
    const groups = new Map<string, Record<Verdict, number>>()
    for (const { fields, count } of countsOf(counts, group)) {
      const verdict = verdicts.find((known) => known === fields.at(-1))
      if (verdict === undefined) continue
      const own = groups.get(nameOf(fields)) ?? noVerdicts()
      groups.set(nameOf(fields), own)
      own[verdict] += count
      if (group === 'verdict') total[verdict] += count
    }
    return [...groups]
  }
  const kinds = groupsOf('verdict', ([kind = '', check = '']) => `${kind}/${check}`)
  const delays = new Map(countsOf(counts, 'delay').map(({ fields, count }) => [fields[0], count]))
  return {
    schema: 1,
    dropped: 0,
    skipped: countsOf(counts, 'exchange')
      .filter(({ fields }) => fields[2] === 'missed')
      .reduce((sum, { count }) => sum + count, 0),
    askedAgain: 0,
    verdicts: total,
    differences: countsOf(counts, 'difference').flatMap(({ fields, count }) => {
      const [path = '', what, v2Class = '', v3Class = ''] = fields
      const kind = differenceKinds.find((known) => known === what)
      return kind === undefined ? [] : [[path, kind, v2Class, v3Class, count]]
    }),
    equivalences: countsOf(counts, 'rule').map(({ fields: [rule = '', path = ''], count }) => [
      rule,
      path,
      count,
    ]),
    expired: [],
    noise: { measured: false, records: 0, differences: [] },
    kinds,
    codeClasses: groupsOf('codeClass', ([name = '']) => name),
    days: groupsOf('comparedOn', ([day = '']) => day),
    delays: delayBounds.map((upToMs) => delays.get(String(upToMs)) ?? 0),
  }
}
