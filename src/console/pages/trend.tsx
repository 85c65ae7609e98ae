import type { TrendDay } from '../../compare/evidence/read-evidence.ts'
import { formatLongDay, formatShare } from '../../compare/report/format.ts'
import { counted, formatCount, Table } from './parts.tsx'

/** Days of the small chart. */
const SHOWN = 14
const [HEIGHT, STEP, BAR] = [24, 8, 6]

/** A share on one line. */
const shareOf = (part: number, whole: number): string | undefined =>
  formatShare(part, whole)?.replace(' ', '\u00a0')

/** What live comparison found on the last days: a bar for the share of each, and in words the last day and those before it. */
export function Trend({ days }: { readonly days: readonly TrendDay[] }) {
  const shown = days.slice(-SHOWN)
  const last = shown.at(-1)
  if (last === undefined) return <>–</>
  const shares = shown.map(({ compared, differing }) => differing / compared)
  const most = Math.max(...shares)
  const before = shown.slice(0, -1)
  const sum = (count: (day: TrendDay) => number): number => before.reduce((all, day) => all + count(day), 0)
  const earlier = shareOf(
    sum(({ differing }) => differing),
    sum(({ compared }) => compared),
  )
  return (
    <span class="trend">
      <svg viewBox={`0 0 ${shown.length * STEP} ${HEIGHT}`} aria-hidden="true">
        {shares.map((share, at) => {
          const height = share === 0 ? 1 : Math.max(3, (share / most) * HEIGHT)
          return <rect x={at * STEP} y={HEIGHT - height} width={BAR} height={height} />
        })}
      </svg>
      <span>
        {shareOf(last.differing, last.compared)} of {counted(last.compared, 'record')} on{' '}
        {formatLongDay(last.day)}
        {earlier !== undefined && `; ${earlier} on ${counted(before.length, 'day')} before`}
      </span>
    </span>
  )
}

/** The days as a table, newest first. */
export function TrendTable({ days }: { readonly days: readonly TrendDay[] }) {
  return (
    <Table
      caption="Differences by day"
      rows={days.toReversed()}
      columns={[
        ['Day (UTC)', ({ day }) => formatLongDay(day)],
        ['Compared', ({ compared }) => formatCount(compared), 'number'],
        ['Differ', ({ differing }) => formatCount(differing), 'number'],
        ['Share', ({ differing, compared }) => formatShare(differing, compared), 'number'],
      ]}
      empty="Live comparison has found nothing yet. It runs at shadow, and later with check.v2."
    />
  )
}
