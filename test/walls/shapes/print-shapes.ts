import { measure } from './measure-shapes.ts'
import { pageReaders, readers } from './readers.ts'
import { shapes } from './shapes.ts'

/** The longest time in milliseconds that a step may block the event loop on a quiet machine. */
const LIMIT_MS = 50
/** The largest allowed cost ratio between a text and one of half its size. */
const LIMIT_GROWTH = 3
/** The cost in milliseconds below which a text is not compared with one of half its size. */
const SHORT_MS = 20
const TRIES = 3

/**
 * Prints the cost of each reader for each shape that `only` names, at an eighth, a quarter, a half and all of the longest text that can
 * reach the reader. A line that begins with `!` names a shape at which a reader blocks the event loop for more than 50 ms, or at which its
 * cost more than triples when the text doubles. A last line for each reader holds its highest values. Resolves with false after any `!`.
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
