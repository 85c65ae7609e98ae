import type { TrendDay } from '../../compare/evidence/read-evidence.ts'
import { formatLongDay, formatShare } from '../../compare/report/format.ts'
import { counted } from './parts.tsx'

/** Days of the small chart. */
const SHOWN = 14
const [HEIGHT, STEP, BAR] = [24, 8, 6]

/** The share of differing records of some days, on one line. */
function shareOf(days: readonly TrendDay[]): string | undefined {
  const sum = (name: 'differing' | 'compared'): number => days.reduce((all, day) => all + day[name], 0)
  return formatShare(sum('differing'), sum('compared'))?.replace(' ', '\u00a0')
}

/** What live comparison found on the last days: a bar for the share of each, and in words the last day and those before it. */
export function Trend({ days }: { readonly days: readonly TrendDay[] }) {
  const shown = days.slice(-SHOWN)
  const last = shown.at(-1)
  if (last === undefined) return <>–</>
  const shares = shown.map(({ compared, differing }) => differing / compared)
  const most = Math.max(...shares)
  const before = shown.slice(0, -1)
  return (
    <span class="trend">
      <svg viewBox={`0 0 ${shown.length * STEP} ${HEIGHT}`} aria-hidden="true">
        {shares.map((share, at) => {
          const height = share === 0 ? 1 : Math.max(3, (share / most) * HEIGHT)
          return <rect x={at * STEP} y={HEIGHT - height} width={BAR} height={height} />
        })}
      </svg>
      <span>
        {shareOf([last])} of {counted(last.compared, 'record')} on {formatLongDay(last.day)}
        {before.length > 0 && `; ${shareOf(before)} on ${counted(before.length, 'day')} before`}
      </span>
    </span>
  )
}
