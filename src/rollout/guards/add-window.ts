import { advanced, totalOf } from './change-evidence.ts'
import { type CountedSides, type Evidence, noRecent } from './evidence.ts'
import { type Counts, isInformative, logOddsEvidence } from './odds-ratio.ts'
import type { CountedTrial, TrialWindow } from './trial-windows.ts'

/**
 * V3 counts as worse only above this ratio of odds against V2. Schools differ: the side with the schools that send more faulty marks would
 * show that as a small but lasting difference, and a test against the ratio 1 finds any lasting difference in the end.
 */
const TOLERATED_ODDS = 3
/** Alternatives: how many times the tolerated odds V3 may have become worse. */
const FACTORS = [3, 12, 50]
/** Units without which the evidence is kept: those that matter most. */
const MAX_WITHOUT = 24

/** The evidence with one more window of one instance; pure. Windows of several instances are added one after another. */
export function addWindow(evidence: Evidence, { trials }: TrialWindow): Evidence {
  if (trials.length === 0) return evidence
  const onV3 = trials.filter(({ side }) => side === 'v3')
  const firstUnit = evidence.firstUnit ?? onV3[0]?.unit
  const known = {
    ...evidence,
    firstUnit,
    hasOthers: evidence.hasOthers || onV3.some(({ unit }) => unit !== firstUnit),
    counted: {
      v3: evidence.counted.v3 + onV3.length,
      v2: evidence.counted.v2 + trials.length - onV3.length,
    },
    recent: addRecent(totalOf(evidence.logs) < 0 ? noRecent : evidence.recent, trials),
  }
  const strata = [...Map.groupBy(trials, ({ stratum }) => stratum).values()]
  return strata.map(toCounts).some(isInformative) ? addTest(known, strata) : known
}

function addRecent(before: CountedSides, trials: readonly CountedTrial[]): CountedSides {
  const recent = { v2: { ...before.v2 }, v3: { ...before.v3 } }
  for (const { side, outcome } of trials) {
    recent[side].trials += 1
    if (outcome !== 'good') recent[side][outcome] += 1
  }
  return recent
}

function toCounts(stratum: readonly CountedTrial[]): Counts {
  let [trials, bad, controlTrials, controlBad] = [0, 0, 0, 0]
  for (const { side, outcome } of stratum) {
    const one = outcome === 'good' ? 0 : 1
    if (side === 'v3') {
      trials += 1
      bad += one
    } else {
      controlTrials += 1
      controlBad += one
    }
  }
  return { trials, bad, controlTrials, controlBad }
}

const ratiosOf = (counts: Counts): readonly number[] =>
  FACTORS.map((factor) => logOddsEvidence(counts, factor * TOLERATED_ODDS, TOLERATED_ODDS))

/** Adds the window to the evidence, and to what it would be without each unit. */
function addTest(known: Evidence, strata: readonly (readonly CountedTrial[])[]): Evidence {
  const nth = known.windows + 1
  const all = strata.map((stratum) => {
    const counts = toCounts(stratum)
    return { stratum, counts, ratios: ratiosOf(counts) }
  })
  const total = FACTORS.map((_, index) => all.reduce((sum, { ratios }) => sum + (ratios[index] ?? 0), 0))
  const own = new Map<string, readonly number[]>()
  for (const { stratum, counts, ratios } of all) {
    for (const { unit, side, outcome } of stratum) {
      const one = outcome === 'good' ? 0 : 1
      if (side !== 'v3' || !(one === 1 || known.without.has(unit))) continue
      const rest = ratiosOf({ ...counts, trials: counts.trials - 1, bad: counts.bad - one })
      own.set(
        unit,
        total.map((log, index) => log - (ratios[index] ?? 0) + (rest[index] ?? 0)),
      )
    }
  }
  const without = [...new Set([...known.without.keys(), ...own.keys()])].map((unit) => {
    // Good trials of a unit before its first bad one speak for V3: to have counted them is on the safe side.
    const before = known.without.get(unit) ?? known.logs
    return [unit, advanced(before, nth, own.get(unit) ?? total)] as const
  })
  // The units without which least evidence is left.
  const kept = without.sort(([, one], [, other]) => totalOf(one) - totalOf(other)).slice(0, MAX_WITHOUT)
  return { ...known, windows: nth, logs: advanced(known.logs, nth, total), without: new Map(kept) }
}
