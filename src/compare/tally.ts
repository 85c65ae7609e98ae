import type { DatedRule } from './diff/findings.ts'
import type { CountedGroup, RunDocument } from './run-document.ts'
import {
  type Comparison,
  differenceKinds,
  type FieldDifference,
  isEqual,
  type Verdict,
  type VerdictCounts,
  verdicts as allVerdicts,
} from './verdict.ts'

/**
 * The sections of a tally. A count is identified by its section and by names that depend on the section. `verdict` has the kind of record
 * and the verdict; `codeClass`, `day` and `hour` have a name and the verdict; `difference` has the path, the kind and the classes of V2 and
 * V3; `equivalence` has the rule and the path; `expired` has the rule; `noise` has the path and the kind; `delay` has its upper bound. The
 * other sections have no names.
 */
type Section =
  | 'verdict'
  | 'codeClass'
  | 'day'
  | 'hour'
  | 'difference'
  | 'equivalence'
  | 'expired'
  | 'noise'
  | 'delay'
  | 'noisy'
  | 'dropped'
  | 'skipped'
  | 'askedAgain'

/** A count with its section and names. No name is a value of a record. */
export type Counted = readonly [section: Section, names: readonly string[], count: number]

export interface RecordGroups {
  readonly kind: string
  /** The day of the session as `YYYY-MM-DD`, or `undefined` if it is unknown. */
  readonly day?: string | undefined
  readonly codeClass?: string | undefined
}

export type Tally = ReturnType<typeof createTally>

/**
 * The maximum number of counts per section. Beyond it, new names count as `(other)`. A run has dozens of classes; `day` has room for 13
 * years with six verdicts each.
 */
const MAX_NAMES = { day: 30_000, other: 1_000 }
const OTHER = '(other)'

/** Creates the counters of a run. `MAX_NAMES` limits their memory. */
export function createTally() {
  const counts = new Map<string, [section: Section, names: readonly string[], count: number]>()
  const sizes = new Map<Section, number>()
  const add = (section: Section, names: readonly string[], count = 1): void => {
    const key = [section, ...names].join('\n')
    const known = counts.get(key)
    const size = sizes.get(section) ?? 0
    if (known !== undefined) known[2] += count
    else if (size >= (section === 'day' ? MAX_NAMES.day : MAX_NAMES.other) && !names.every(isFixedName))
      add(
        section,
        names.map((name) => (isFixedName(name) ? name : OTHER)),
        count,
      )
    else {
      counts.set(key, [section, names, count])
      sizes.set(section, size + 1)
    }
  }
  return {
    add: (comparison: Comparison, { kind, day, codeClass }: RecordGroups): void => {
      const { verdict, differences, equivalences, expiredRules = [] } = comparison
      add('verdict', [kind, verdict])
      if (day !== undefined) add('day', [day, verdict])
      if (codeClass !== undefined) add('codeClass', [codeClass, verdict])
      for (const { path, kind: how, v2Class, v3Class } of differences)
        add('difference', [path, how, v2Class, v3Class])
      for (const { rule, path } of equivalences) add('equivalence', [rule, path])
      for (const name of expiredRules) add('expired', [name])
    },
    /** Counts a record as noise if two reads of V2 differ in it. */
    addNoise: ({ verdict, differences }: Comparison): void => {
      if (isEqual({ verdict })) return
      add('noisy', [])
      const fields = new Map(differences.map(({ path, kind }) => [`${path} ${kind}`, [path, kind]]))
      // A record that only one of the two reads returned differs as a whole.
      if (verdict === 'onlyV2') fields.set('', ['(row)', 'missing'])
      if (verdict === 'onlyV3') fields.set('', ['(row)', 'extra'])
      for (const names of fields.values()) add('noise', names)
    },
    count: (section: 'dropped' | 'skipped' | 'askedAgain', records: number): void => {
      if (records > 0) add(section, [], records)
    },
    merge: (others: readonly Counted[]): void => {
      for (const counted of others) add(...counted)
    },
    counts: (): readonly Counted[] => [...counts.values()],
  }
}

/**
 * Returns true for names from fixed lists, such as kinds of difference. `add` keeps these names when it replaces the others by `(other)`.
 */
const isFixedName = (name: string): boolean =>
  name === OTHER ||
  differenceKinds.some((kind) => kind === name) ||
  allVerdicts.some((verdict) => verdict === name)

/** The upper bounds of the delay buckets in milliseconds. The last bucket, `null`, has no upper bound. */
export const delayBounds = [100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, null] as const

export type RunHeader = Pick<
  RunDocument,
  'run' | 'kind' | 'partner' | 'startedAt' | 'endedAt' | 'complete'
> & {
  /** The first day of the run. Default: the first day of the records, or the day on which the run began if no record has a day. */
  readonly from?: string
  readonly to?: string
  readonly services?: RunDocument['services']
  readonly noise: boolean
  readonly rules?: readonly DatedRule[]
}

export function toDocument(
  { noise, rules = [], services = null, from, to, ...header }: RunHeader,
  counts: readonly Counted[],
): RunDocument {
  const sections = Map.groupBy(counts, ([section]) => section)
  const of = (section: Section): readonly Counted[] => sections.get(section) ?? []
  const sum = (section: Section): number => of(section).reduce((total, [, , count]) => total + count, 0)
  const kinds = toGroups(of('verdict'))
  const days = toGroups(of('day'))
  const dated = days.map(({ name }) => name).filter((name) => name !== OTHER)
  const began = header.startedAt.slice(0, 10)
  const verdicts = addVerdicts(kinds.map((group) => group.verdicts))
  const compared = Object.values(verdicts).reduce((total, count) => total + count, 0)
  const [dropped, skipped] = [sum('dropped'), sum('skipped')]
  return {
    schema: 1,
    ...header,
    services,
    from: from ?? dated[0] ?? began,
    to: to ?? dated.at(-1) ?? began,
    ...{ offered: compared + dropped + skipped, compared, dropped, skipped },
    verdicts,
    differences: largestFirst(
      of('difference').map(([, [path = '', kind, v2Class = '', v3Class = ''], count]) => ({
        ...{ path, kind: kindOf(kind), v2Class, v3Class, count },
      })),
    ),
    equivalences: largestFirst(
      of('equivalence').map(([, [rule = '', path = ''], count]) => ({ rule, path, count })),
    ),
    noise: {
      measured: noise,
      records: sum('noisy'),
      differences: largestFirst(
        of('noise').map(([, [path = '', kind], count]) => ({ path, kind: kindOf(kind), count })),
      ),
    },
    ownRules: rules.map(({ name, reason, owner, path, expires, expired }) => {
      const found = of(expired ? 'expired' : 'equivalence').filter(
        ([, [rule, field]]) => rule === name && (expired || field === path),
      )
      const count = found.reduce((total, [, , own]) => total + own, 0)
      return { name, reason, owner, path, expires, expired, count }
    }),
    ...{ kinds, codeClasses: toGroups(of('codeClass')), days, hours: toGroups(of('hour')) },
    delays: of('delay')
      .map(([, [upTo], count]) => ({ upToMs: upTo === 'null' ? null : Number(upTo), count }))
      .sort((one, other) => (one.upToMs ?? Infinity) - (other.upToMs ?? Infinity)),
    askedAgain: sum('askedAgain'),
  }
}

const noVerdicts: VerdictCounts = { same: 0, equivalent: 0, differs: 0, onlyV2: 0, onlyV3: 0, unknown: 0 }

export function addVerdicts(all: readonly Partial<VerdictCounts>[]): VerdictCounts {
  const sum: Record<Verdict, number> = { ...noVerdicts }
  for (const counts of all) for (const verdict of allVerdicts) sum[verdict] += counts[verdict] ?? 0
  return sum
}

function toGroups(counts: readonly Counted[]): readonly CountedGroup[] {
  const groups = [...Map.groupBy(counts, ([, [name = '']]) => name)]
  return groups
    .map(([name, own]) => ({
      name,
      verdicts: addVerdicts(own.map(([, [, verdict = ''], count]) => ({ [verdict]: count }))),
    }))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
}

const kindOf = (name: string | undefined): FieldDifference['kind'] =>
  differenceKinds.find((kind) => kind === name) ?? 'value'

/** Sorts items by count, largest first, then by their JSON, so that the order of the records does not change the document. */
function largestFirst<Item extends { readonly count: number }>(items: readonly Item[]): readonly Item[] {
  const keys = new Map(items.map((item) => [item, JSON.stringify(item)]))
  return items.toSorted(
    (one, other) => other.count - one.count || ((keys.get(one) ?? '') < (keys.get(other) ?? '') ? -1 : 1),
  )
}
