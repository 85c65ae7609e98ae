import { type Column, table, Time } from './parts.tsx'

/** A line of a chart; `color`: a name of the style sheet. */
type Line<Name> = readonly [name: Name, label: string, color: string]

interface ChartProps<Name> {
  readonly title: string
  readonly fromMs: number
  readonly stepMs: number
  readonly points: number
  readonly lines: readonly Line<Name>[]
  readonly valueOf: (name: Name, at: number) => number
}

interface Point {
  readonly ms: number
  readonly values: readonly number[]
}

const MAX_ROWS = 100
/** Lines are told apart without their colours, too. */
const dashes = [undefined, [8, 4], [2, 3], [12, 4, 2, 4], [4, 4]]

/** Figures over time, drawn where a browser runs scripts and as a table in any. */
export function Chart<Name>({ title, fromMs, stepMs, points, lines, valueOf }: ChartProps<Name>) {
  const rows = Array.from({ length: points }, (_, at): Point => {
    return { ms: fromMs + at * stepMs, values: lines.map(([name]) => valueOf(name, at)) }
  })
  const series = lines.map(([, label, color], at) => ({
    ...{ label, color, dash: dashes[at] },
    values: rows.map(({ values }) => values[at]),
  }))
  const columns = lines.map(([, label], at): Column<Point> => [label, ({ values }) => values[at] ?? 0])
  const figures = table(title, 'Nothing in this time.', [
    ['from (UTC)', ({ ms }: Point) => <Time ms={ms} />],
    ...columns,
  ])
  const shown = rows.filter(({ values }) => values.some((value) => value !== 0))
  return (
    <figure class="chart" data-chart={JSON.stringify({ x: rows.map(({ ms }) => ms / 1_000), series })}>
      <figcaption>{title}</figcaption>
      <div class="plot" aria-hidden="true" />
      <details>
        <summary>Figures of {title.toLowerCase()}</summary>
        {figures(shown.slice(-MAX_ROWS).reverse())}
      </details>
    </figure>
  )
}
