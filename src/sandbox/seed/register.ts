import type { Random } from '../random.ts'
import type { CodeTable } from './code-table.ts'

/** The two marks of a learner's day. */
export interface DayMarks {
  readonly am: number
  readonly pm: number
  /** Minutes late in the morning, where the code says late. */
  readonly minutesLate: number | null
}

/** Codes of a morning and an afternoon, and how many of 1,000 days are so in a primary school (service-facts). */
const patterns: readonly (readonly [am: string, pm: string, perThousand: number])[] = [
  ['/', '\\', 934],
  ['L', '\\', 11],
  ['V', 'V', 2],
  ['B', 'B', 1],
  ['P', '\\', 1],
  ['I', 'I', 24],
  ['/', 'I01', 3],
  ['M', '\\', 6],
  ['/', 'M', 3],
  ['C', 'C', 2],
  ['G', 'G', 5],
  ['O', 'O', 3],
  ['U', '\\', 2],
  ['R', 'R', 1],
  ['E', 'E', 1],
  ['/', 'N', 1],
]

/** Creates the function that marks one day of one learner. */
export function createRegister(codes: CodeTable): (random: Random) => DayMarks {
  const late = codes.named('L').number
  const afterClose = codes.named('U').number
  const total = patterns.reduce((sum, [, , weight]) => sum + weight, 0)
  // One slot per thousandth: a draw is an index.
  const slots = patterns.flatMap(([am, pm, weight]) =>
    Array.from({ length: weight }, () => ({ am: codes.named(am).number, pm: codes.named(pm).number })),
  )
  const usual = { am: codes.named('/').number, pm: codes.named('\\').number }
  return (random) => {
    const { am, pm } = slots[random.below(total)] ?? usual
    if (am === late) return { am, pm, minutesLate: 1 + random.below(25) }
    return { am, pm, minutesLate: am === afterClose ? 31 + random.below(60) : null }
  }
}
