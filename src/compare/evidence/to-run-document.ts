import type { KeptEvidence } from '../../rollout/index.ts'
import type { CountedGroup, RunDocument } from '../run-document.ts'
import { differenceKinds, type Verdict, type VerdictCounts, verdicts } from '../verdict.ts'
import { createVerdictGroups, noVerdicts } from '../verdict-groups.ts'
import { countsOf } from './count-name.ts'
import { delayClasses, LONGER } from './to-entry.ts'

const MAX_GROUPS = 3_000

/**
 * Evidence as the document of a run of the kind `live`. `skipped` counts requests, whose records are not known: those that were sampled and
 * not compared. Repeated requests count once.
 */
export function toRunDocument({ scope, counts, sinceMs, lastMs }: KeptEvidence): RunDocument {
  const { partner, stage, revision } = scope
  const kinds = createVerdictGroups(MAX_GROUPS)
  const total = noVerdicts()
  for (const { fields, count } of countsOf(counts, 'verdict')) {
    const [kind = '', check = '', verdict] = fields
    if (!isVerdict(verdict)) continue
    total[verdict] += count
    kinds.add(`${kind}/${check}`, verdict, count)
  }
  const compared = verdicts.reduce((sum, verdict) => sum + total[verdict], 0)
  const skipped = countsOf(counts, 'exchange')
    .filter(({ fields }) => fields[2] === 'missed')
    .reduce((sum, { count }) => sum + count, 0)
  const days = groupsOf(counts, 'comparedOn')
  const since = new Date(sinceMs).toISOString()
  return {
    schema: 1,
    run: `live-${partner}-${stage}-${revision}`,
    kind: 'live',
    partner,
    startedAt: since,
    endedAt: new Date(lastMs).toISOString(),
    from: days[0]?.name ?? since.slice(0, 10),
    to: days.at(-1)?.name ?? since.slice(0, 10),
    complete: true,
    offered: compared + skipped,
    compared,
    dropped: 0,
    skipped,
    verdicts: total,
    differences: differencesOf(counts),
    equivalences: countsOf(counts, 'rule')
      .map(({ fields: [rule = '', path = ''], count }) => ({ rule, path, count }))
      .sort(largestFirst),
    noise: { measured: false, records: 0, differences: [] },
    // A rule of the partner's own shows among the equivalences, by its name.
    ownRules: [],
    kinds: kinds.entries().map(toGroup),
    codeClasses: groupsOf(counts, 'codeClass'),
    days,
    delays: delaysOf(counts),
    askedAgain: 0,
  }
}

function differencesOf(counts: ReadonlyMap<string, number>): RunDocument['differences'] {
  return countsOf(counts, 'difference')
    .flatMap(({ fields: [path = '', what, v2Class = '', v3Class = ''], count }) => {
      const kind = differenceKinds.find((known) => known === what)
      return kind === undefined ? [] : [{ path, kind, v2Class, v3Class, count }]
    })
    .sort(largestFirst)
}

function groupsOf(
  counts: ReadonlyMap<string, number>,
  group: 'comparedOn' | 'codeClass',
): readonly CountedGroup[] {
  const groups = createVerdictGroups(MAX_GROUPS)
  for (const { fields, count } of countsOf(counts, group)) {
    const [name = '', verdict] = fields
    if (isVerdict(verdict)) groups.add(name, verdict, count)
  }
  return groups.entries().map(toGroup)
}

function delaysOf(counts: ReadonlyMap<string, number>): RunDocument['delays'] {
  const found = new Map(countsOf(counts, 'delay').map(({ fields, count }) => [fields[0] ?? '', count]))
  if (found.size === 0) return []
  return [
    ...delayClasses.map((upToMs) => ({ upToMs, count: found.get(String(upToMs)) ?? 0 })),
    { upToMs: null, count: found.get(LONGER) ?? 0 },
  ]
}

const toGroup = ([name, counted]: readonly [string, VerdictCounts]): CountedGroup => ({
  name,
  verdicts: counted,
})
const isVerdict = (text: string | undefined): text is Verdict => verdicts.some((known) => known === text)
const largestFirst = (one: { readonly count: number }, other: { readonly count: number }): number =>
  other.count - one.count
