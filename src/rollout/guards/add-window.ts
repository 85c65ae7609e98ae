import { advanced, totalOf } from './change-evidence.ts'
import {
  type Evidence,
  evidenceOf,
  type KindEvidence,
  type TestEvidence,
  type UnitsEvidence,
} from './evidence.ts'
import { type GuardKind, type GuardKindName, guardKindNames, guardKinds } from './guard-kinds.ts'
import { type Counts, isInformative, logOddsEvidence, logShareEvidence } from './odds-ratio.ts'
import type { CountedTrial, TrialWindow } from './trial-windows.ts'

/** Alternatives: how many times the tolerated odds V3 may have become worse. */
const V3_FACTORS = [3, 12, 50]
/** A unit counts as broken only when it is much worse than all others: schools differ. */
const UNIT_TOLERATED = 4
const UNIT_FACTORS = [4, 20, 100]
const ALONE_FACTORS = [2, 5, 20]
const REVERSE_ODDS = 4
/** Units without which a test is kept: those that matter most. */
const MAX_WITHOUT = 24
/** Units that are followed one by one, and how many of them a window may add in place of the least suspicious. */
const MAX_FOLLOWED = 48
const MAX_FOUND = 6
/** A chance gap in the writes of V2 is no lack of a control group: failures of both sides may fall into it. */
const CONTROL_GAP_MS = 1_800_000

/** A trial that was judged for the kind in question. */
interface Judged {
  readonly unit: string
  readonly onV3: boolean
  readonly bad: boolean
}

type Stratum = readonly Judged[]

/**
 * The evidence with one more window of one instance; pure. Windows of several instances are added one after another. `v2Serves`: at the
 * stage of the partner some units are served by V2.
 */
export function addWindow(evidence: Evidence, window: TrialWindow, v2Serves: boolean): Evidence {
  if (window.trials.length === 0) return evidence
  const hasControl = window.trials.some(({ side }) => side === 'v2')
  const seenMs = evidence.controlSeenMs ?? window.endMs
  const lacksControl = !hasControl && (!v2Serves || window.endMs - seenMs >= CONTROL_GAP_MS)
  const kinds = guardKindNames.map((kind) => {
    const strata = toStrata(window.trials, kind)
    const known = evidenceOf(evidence, kind)
    return [kind, addKind(known, strata, guardKinds[kind], lacksControl)] as const
  })
  const controlSeenMs = hasControl ? Math.max(seenMs, window.endMs) : seenMs
  return { ...evidence, controlSeenMs, kinds: new Map(kinds) }
}

function toStrata(trials: readonly CountedTrial[], kind: GuardKindName): Stratum[] {
  const strata = new Map<number, Judged[]>()
  for (const { unit, side, stratum, bad } of trials) {
    const isBad = bad[kind]
    if (isBad === undefined) continue
    const judged = strata.get(stratum) ?? []
    strata.set(stratum, judged)
    judged.push({ unit, onV3: side === 'v3', bad: isBad })
  }
  return [...strata.values()]
}

function addKind(
  known: KindEvidence,
  strata: readonly Stratum[],
  kind: GuardKind,
  lacksControl: boolean,
): KindEvidence {
  const { toleratedOdds, toleratedShare } = kind
  const sides = strata.map(toSides)
  const reversed = sides.map(({ trials, bad, controlTrials, controlBad }) =>
    logOddsEvidence(
      { trials: controlTrials, bad: controlBad, controlTrials: trials, controlBad: bad },
      REVERSE_ODDS,
      1,
    ),
  )
  const counted = sides.reduce(
    ({ v3, v3Bad, v2, v2Bad }, { trials, bad, controlTrials, controlBad }) => ({
      v3: v3 + trials,
      v3Bad: v3Bad + bad,
      v2: v2 + controlTrials,
      v2Bad: v2Bad + controlBad,
    }),
    known.counted,
  )
  const controlRatios = (counts: Counts): number[] =>
    V3_FACTORS.map((factor) => logOddsEvidence(counts, factor * toleratedOdds, toleratedOdds))
  const aloneRatios = ({ trials, bad }: Counts): number[] =>
    ALONE_FACTORS.map((factor) => logShareEvidence(trials, bad, toleratedShare, factor))
  return {
    control: sides.some(isInformative) ? addTest(known.control, strata, controlRatios) : known.control,
    alone: lacksControl || kind.oneSided ? addTest(known.alone, strata, aloneRatios) : known.alone,
    units: addUnits(known.units, strata, UNIT_TOLERATED * toleratedOdds),
    reverse: reversed.reduce((sum, ratio) => Math.max(0, sum + ratio), known.reverse),
    counted,
  }
}

function toSides(stratum: Stratum): Counts {
  return countsOf(stratum, ({ onV3 }) => onV3)
}

function countsOf(stratum: Stratum, isInGroup: (trial: Judged) => boolean): Counts {
  let [trials, bad, controlTrials, controlBad] = [0, 0, 0, 0]
  for (const trial of stratum) {
    const one = trial.bad ? 1 : 0
    if (isInGroup(trial)) {
      trials += 1
      bad += one
    } else {
      controlTrials += 1
      controlBad += one
    }
  }
  return { trials, bad, controlTrials, controlBad }
}

/** Adds the window to a test, and to what the test would be without each unit: an alarm needs both. */
function addTest(
  test: TestEvidence,
  strata: readonly Stratum[],
  ratiosOf: (counts: Counts) => readonly number[],
): TestEvidence {
  const nth = test.windows + 1
  const parts = strata.map((stratum) => {
    const counts = toSides(stratum)
    const { trials, bad } = counts
    return {
      stratum,
      ratios: ratiosOf(counts),
      withoutGood: once(() => ratiosOf({ ...counts, trials: trials - 1 })),
      withoutBad: once(() => ratiosOf({ ...counts, trials: trials - 1, bad: bad - 1 })),
    }
  })
  const total = sumOf(parts.map(({ ratios }) => ratios))
  const logs = advanced(test.logs, nth, total)
  const own = new Map<string, readonly number[]>()
  const found: string[] = []
  for (const { stratum, ratios, withoutGood, withoutBad } of parts) {
    for (const { unit, onV3, bad } of stratum) {
      if (!onV3 || !(bad || test.without.has(unit))) continue
      const rest = bad ? withoutBad() : withoutGood()
      own.set(
        unit,
        total.map((log, index) => log - (ratios[index] ?? 0) + (rest[index] ?? 0)),
      )
      if (!test.without.has(unit)) found.push(unit)
    }
  }
  const tracked = [...test.without.keys(), ...found]
  const without = tracked.map((unit) => {
    // Good trials of a unit before its first bad one speak for V3: to have counted them is on the safe side.
    const before = test.without.get(unit) ?? test.logs
    return [unit, advanced(before, nth, own.get(unit) ?? total)] as const
  })
  // The units without which least evidence is left.
  const kept = without.sort(([, one], [, other]) => totalOf(one) - totalOf(other)).slice(0, MAX_WITHOUT)
  return { ...test, windows: nth, logs, without: new Map(kept) }
}

/** Adds the window to the evidence about each unit that was bad before, and notes those that were bad in it for the next windows. */
function addUnits(known: UnitsEvidence, strata: readonly Stratum[], tolerated: number): UnitsEvidence {
  const all = strata.map((stratum) => ({ stratum, counts: countsOf(stratum, () => true) }))
  if (!all.some(({ counts }) => counts.bad > 0)) return known
  const nth = known.windows + 1
  const tracked = new Map(known.units)
  const found: string[] = []
  for (const { stratum, counts } of all) {
    for (const { unit, onV3, bad } of stratum) {
      if (!onV3) continue
      const before = known.units.get(unit)
      if (before !== undefined) {
        const one = bad ? 1 : 0
        const against = {
          trials: 1,
          bad: one,
          controlTrials: counts.trials - 1,
          controlBad: counts.bad - one,
        }
        const ratios = UNIT_FACTORS.map((factor) => logOddsEvidence(against, factor * tolerated, tolerated))
        tracked.set(unit, { rank: before.rank, logs: advanced(before.logs, nth, ratios) })
      } else if (bad && found.length < MAX_FOUND) found.push(unit)
    }
  }
  // Those that were found begin with the next window: they were chosen because they were bad in this one.
  const entered = found.map((unit, index) => [unit, { rank: known.ranks + index + 1, logs: [] }] as const)
  const strongestFirst = [...tracked].sort(([, one], [, other]) => totalOf(other.logs) - totalOf(one.logs))
  const units = new Map([...strongestFirst.slice(0, MAX_FOLLOWED - entered.length), ...entered])
  return { ...known, windows: nth, ranks: known.ranks + entered.length, units }
}

function sumOf(rows: readonly (readonly number[])[]): number[] {
  const [first = [], ...others] = rows
  return first.map((value, index) => others.reduce((sum, row) => sum + (row[index] ?? 0), value))
}

function once<Value>(compute: () => Value): () => Value {
  let computed: { readonly value: Value } | undefined
  return () => (computed ??= { value: compute() }).value
}
