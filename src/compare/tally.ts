import { type BoundedCounts, createBoundedCounts } from './bounded-counts.ts'
import type { DatedRule } from './diff/index.ts'
import type { AppliedRule, RunDocument } from './run-document.ts'
import type { TallyState } from './tally-state.ts'
import type { Comparison, DifferenceKind, Verdict } from './verdict.ts'
import { addVerdicts, createVerdictGroups, noVerdicts, type VerdictGroups } from './verdict-groups.ts'

/** The groups that a record is counted in. */
export interface RecordGroups {
  /** `marks`, `registrations`, `batch`, … */
  readonly kind: string
  /** `YYYY-MM-DD`; undefined: not known. */
  readonly day?: string | undefined
  readonly codeClass?: string | undefined
}

/** What of a run's document is not counted. */
export type RunHeader = Pick<
  RunDocument,
  'run' | 'kind' | 'partner' | 'startedAt' | 'endedAt' | 'from' | 'to' | 'complete'
>

/** Adds up what a run compared. It holds classes and counts only, a bounded number of them. */
export interface Tally {
  add(comparison: Comparison, groups: RecordGroups): void
  /** Counts records that found no room in the queue. */
  drop(records: number): void
  /** Counts records that were offered and not asked for: outside the sample, or above a bound. */
  skip(records: number): void
  askAgain(records: number): void
  /** Says that V2 is read twice; each record that it gave twice follows. */
  measureNoise(): void
  /** A record as V2 gave it twice. */
  addNoise(comparison: Comparison): void
  addDelay(ms: number): void
  /** Adds the counts of another tally, such as that of a checkpoint. */
  merge(state: TallyState): void
  state(): TallyState
  toDocument(header: RunHeader): RunDocument
}

/** Classes of differences that are told apart; all others count as `(other)`. A run of the service has some dozens. */
const MAX_CLASSES = 1_000
const MAX_GROUPS = 100
/** Thirteen years. */
const MAX_DAYS = 5_000
const OTHER = '(other)'

/** Upper bounds of the delays that are told apart, ms; null: longer than all. */
export const delayBounds: readonly (number | null)[] = [
  100,
  250,
  500,
  1_000,
  2_000,
  5_000,
  10_000,
  30_000,
  60_000,
  null,
]

interface Counts {
  dropped: number
  skipped: number
  askedAgain: number
  isNoiseMeasured: boolean
  noisyRecords: number
  readonly verdicts: Record<Verdict, number>
  readonly differences: BoundedCounts
  readonly equivalences: BoundedCounts
  readonly expired: BoundedCounts
  readonly noise: BoundedCounts
  readonly kinds: VerdictGroups
  readonly codeClasses: VerdictGroups
  readonly days: VerdictGroups
  readonly delays: number[]
}

/** Keys of classes: their parts by lines, which none of them has. */
const keyOf = (...parts: readonly string[]): string => parts.join('\n')

/** Creates an empty tally; `rules` are the partner's own, for the document. */
export function createTally(rules: readonly DatedRule[] = []): Tally {
  const counts = createCounts()
  return {
    add: (comparison, groups) => {
      addComparison(counts, comparison, groups)
    },
    drop: (records) => {
      counts.dropped += records
    },
    skip: (records) => {
      counts.skipped += records
    },
    askAgain: (records) => {
      counts.askedAgain += records
    },
    measureNoise: () => {
      counts.isNoiseMeasured = true
    },
    addNoise: (comparison) => {
      counts.isNoiseMeasured = true
      addNoise(counts, comparison)
    },
    addDelay: (ms) => {
      const at = delayBounds.findIndex((bound) => bound === null || ms <= bound)
      counts.delays[at] = (counts.delays[at] ?? 0) + 1
    },
    merge: (state) => {
      mergeState(counts, state)
    },
    state: () => toState(counts),
    toDocument: (header) => toDocument(counts, header, rules),
  }
}

function createCounts(): Counts {
  const all = (): string => OTHER
  return {
    dropped: 0,
    skipped: 0,
    askedAgain: 0,
    isNoiseMeasured: false,
    noisyRecords: 0,
    verdicts: noVerdicts(),
    // The kind of a difference is kept: what is missing must not be taken for another value.
    differences: createBoundedCounts(MAX_CLASSES, (key) =>
      keyOf(OTHER, key.split('\n')[1] ?? '', OTHER, OTHER),
    ),
    equivalences: createBoundedCounts(MAX_CLASSES, (key) => keyOf(key.split('\n')[0] ?? '', OTHER)),
    expired: createBoundedCounts(MAX_CLASSES, all),
    noise: createBoundedCounts(MAX_CLASSES, (key) => keyOf(OTHER, key.split('\n')[1] ?? '')),
    kinds: createVerdictGroups(MAX_GROUPS),
    codeClasses: createVerdictGroups(MAX_GROUPS),
    days: createVerdictGroups(MAX_DAYS),
    delays: delayBounds.map(() => 0),
  }
}

function addComparison(counts: Counts, comparison: Comparison, { kind, day, codeClass }: RecordGroups): void {
  const { verdict, differences, equivalences, expiredRules = [] } = comparison
  counts.verdicts[verdict] += 1
  counts.kinds.add(kind, verdict)
  if (day !== undefined) counts.days.add(day, verdict)
  if (codeClass !== undefined) counts.codeClasses.add(codeClass, verdict)
  for (const found of differences) {
    counts.differences.add(keyOf(found.path, found.kind, found.v2Class, found.v3Class))
  }
  for (const { rule, path } of equivalences) counts.equivalences.add(keyOf(rule, path))
  for (const name of expiredRules) counts.expired.add(name)
}

/** A record that V2 gave once of two times differs as a whole. */
function addNoise(counts: Counts, { verdict, differences }: Comparison): void {
  if (verdict === 'same' || verdict === 'equivalent') return
  counts.noisyRecords += 1
  const found = new Set(differences.map(({ path, kind }) => keyOf(path, kind)))
  if (verdict === 'onlyV2') found.add(keyOf('(row)', 'missing'))
  if (verdict === 'onlyV3') found.add(keyOf('(row)', 'extra'))
  for (const key of found) counts.noise.add(key)
}

function mergeState(counts: Counts, state: TallyState): void {
  counts.dropped += state.dropped
  counts.skipped += state.skipped
  counts.askedAgain += state.askedAgain
  counts.isNoiseMeasured ||= state.noise.measured
  counts.noisyRecords += state.noise.records
  addVerdicts(counts.verdicts, state.verdicts)
  for (const [path, kind, v2, v3, count] of state.differences)
    counts.differences.add(keyOf(path, kind, v2, v3), count)
  for (const [rule, path, count] of state.equivalences) counts.equivalences.add(keyOf(rule, path), count)
  for (const [name, count] of state.expired) counts.expired.add(name, count)
  for (const [path, kind, count] of state.noise.differences) counts.noise.add(keyOf(path, kind), count)
  for (const [name, verdicts] of state.kinds) counts.kinds.addAll(name, verdicts)
  for (const [name, verdicts] of state.codeClasses) counts.codeClasses.addAll(name, verdicts)
  for (const [name, verdicts] of state.days) counts.days.addAll(name, verdicts)
  for (const [at, count] of state.delays.entries()) {
    if (at < counts.delays.length) counts.delays[at] = (counts.delays[at] ?? 0) + count
  }
}

function toState(counts: Counts): TallyState {
  const { dropped, skipped, askedAgain } = counts
  return {
    schema: 1,
    dropped,
    skipped,
    askedAgain,
    verdicts: { ...counts.verdicts },
    differences: counts.differences.entries().map(([key, count]) => {
      const [path = '', kind = '', v2Class = '', v3Class = ''] = key.split('\n')
      return [path, kind as DifferenceKind, v2Class, v3Class, count]
    }),
    equivalences: counts.equivalences.entries().map(([key, count]) => {
      const [rule = '', path = ''] = key.split('\n')
      return [rule, path, count]
    }),
    expired: counts.expired.entries().map(([name, count]) => [name, count]),
    noise: {
      measured: counts.isNoiseMeasured,
      records: counts.noisyRecords,
      differences: counts.noise.entries().map(([key, count]) => {
        const [path = '', kind = ''] = key.split('\n')
        return [path, kind as DifferenceKind, count]
      }),
    },
    kinds: toGroups(counts.kinds),
    codeClasses: toGroups(counts.codeClasses),
    days: toGroups(counts.days),
    delays: [...counts.delays],
  }
}

const toGroups = (groups: VerdictGroups): TallyState['kinds'] =>
  groups.entries().map(([name, verdicts]) => [name, { ...verdicts }])

function toDocument(counts: Counts, header: RunHeader, rules: readonly DatedRule[]): RunDocument {
  const { dropped, skipped, verdicts, differences, equivalences, noise, ...state } = toState(counts)
  const compared = Object.values(verdicts).reduce((sum, count) => sum + count, 0)
  const named = ([name, group]: TallyState['kinds'][number]): RunDocument['kinds'][number] => ({
    name,
    verdicts: group,
  })
  return {
    schema: 1,
    ...header,
    offered: compared + dropped + skipped,
    compared,
    dropped,
    skipped,
    verdicts,
    differences: largestFirst(
      differences.map(([path, kind, v2Class, v3Class, count]) => ({ path, kind, v2Class, v3Class, count })),
    ),
    equivalences: largestFirst(equivalences.map(([rule, path, count]) => ({ rule, path, count }))),
    noise: {
      measured: noise.measured,
      records: noise.records,
      differences: largestFirst(noise.differences.map(([path, kind, count]) => ({ path, kind, count }))),
    },
    ownRules: rules.map((rule) => toApplied(rule, counts)),
    kinds: state.kinds.map(named),
    codeClasses: state.codeClasses.map(named),
    days: state.days.map(named),
    delays: toDelays(state.delays),
    askedAgain: state.askedAgain,
  }
}

/** Those of one count in the order of their texts, so that a document does not depend on the order of records. */
function largestFirst<Item extends { readonly count: number }>(items: readonly Item[]): readonly Item[] {
  const keys = new Map(items.map((item) => [item, JSON.stringify(item)]))
  return items.toSorted(
    (one, other) => other.count - one.count || ((keys.get(one) ?? '') < (keys.get(other) ?? '') ? -1 : 1),
  )
}

function toApplied({ name, reason, owner, path, expires, expired }: DatedRule, counts: Counts): AppliedRule {
  const count = expired ? counts.expired.get(name) : counts.equivalences.get(keyOf(name, path))
  return { name, reason, owner, path, expires, expired, count }
}

function toDelays(delays: readonly number[]): RunDocument['delays'] {
  if (delays.every((count) => count === 0)) return []
  return delayBounds.map((upToMs, at) => ({ upToMs, count: delays[at] ?? 0 }))
}
