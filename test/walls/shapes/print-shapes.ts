import { measure } from './measure-shapes.ts'
import { pageReaders, readers } from './readers.ts'
import { shapes } from './shapes.ts'

/** What no step may hold the event loop for on a quiet machine, ms. */
const LIMIT_MS = 50
/** Twice as much of a text may cost this much more, each time. */
const LIMIT_GROWTH = 3
/** What costs less is not compared with what half of it costs. */
const SHORT_MS = 20
const TRIES = 3

/**
 * Prints what each reader costs for each shape that `only` names, at an eighth, a quarter, a half and all of the longest text that can reach it,
 * where it holds the event loop for more than 50 ms, or where the cost of twice as much is more than three times as much. Resolves false where
 * there is such a reader.
 */
export async function printShapes(only: RegExp): Promise<boolean> {
  let isSound = true
  for (const reader of [...readers, ...(await pageReaders())]) {
    const limitMs = reader.isOffLoop === true ? Infinity : LIMIT_MS
    let [longestMs, worstGrowth] = [0, 0]
    const wanted = shapes.filter(([name]) => only.test(`${reader.name}: ${name}`))
    for (const [name, make] of wanted) {
      let [hold, growth] = [Infinity, Infinity]
      for (let count = 0; count < TRIES && (hold > limitMs || growth > LIMIT_GROWTH); count += 1) {
        let before = 0
        let [ownHold, ownGrowth] = [0, 0]
        for (const share of [8, 4, 2, 1]) {
          const cost = await measure(reader, make(reader.longest / share))
          ownHold = Math.max(ownHold, cost.longestMs)
          if (before > SHORT_MS) ownGrowth = Math.max(ownGrowth, cost.totalMs / before)
          before = cost.totalMs
        }
        ;[hold, growth] = [Math.min(hold, ownHold), Math.min(growth, ownGrowth)]
      }
      ;[longestMs, worstGrowth] = [Math.max(longestMs, hold), Math.max(worstGrowth, growth)]
      if (hold <= limitMs && growth <= LIMIT_GROWTH) continue
      isSound = false
      console.log(`! ${hold.toFixed(0)} ms, ×${growth.toFixed(1)}  ${reader.name}: ${name}`)
    }
    if (wanted.length > 0)
      console.log(`${longestMs.toFixed(1).padStart(7)} ms  ×${worstGrowth.toFixed(1)}  ${reader.name}`)
  }
  return isSound
}
