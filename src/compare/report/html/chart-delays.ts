import { formatBound, formatCell } from '../format.ts'
import { leastOf, type PublishedCount, type PublishedRun } from '../published-run.ts'
import { bar } from './chart-bars.ts'
import { html, type Markup } from './markup.ts'

/** How long marks took to be visible on the other side. */
export function chartDelays({ delays }: PublishedRun): Markup | undefined {
  if (delays.every(({ count }) => count === 0)) return undefined
  const counts = delays.map(({ count }) => count)
  const most = Math.max(1, ...delays.map(({ count }) => leastOf(count)))
  return html`<figure class="chart">
    <figcaption>
      <h3>Delay</h3>
      <p>Time until a mark that one side had accepted was visible on the other.</p>
    </figcaption>
    <table class="bars">
      <thead>
        <tr>
          <th scope="col">Up to</th>
          <th scope="col"><span class="hidden">Chart</span></th>
          <th scope="col" class="n">Marks</th>
          <th scope="col" class="n">Visible by then</th>
        </tr>
      </thead>
      <tbody>
        ${delays.map(({ upToMs, count }, index) => {
          return html`<tr>
            <th scope="row">${upToMs === null ? 'longer' : formatBound(upToMs)}</th>
            <td class="plot">${bar([{ name: 'delay', count }], most)}</td>
            <td class="n">${formatCell(count)}</td>
            <td class="n">${shareBy(counts, index)}</td>
          </tr>`
        })}
      </tbody>
    </table>
  </figure>`
}

/** The share of marks that were visible by then; a lower bound where counts are withheld. */
function shareBy(counts: readonly PublishedCount[], index: number): string {
  const least = (part: readonly PublishedCount[]): number =>
    part.reduce<number>((sum, count) => sum + leastOf(count), 0)
  const later = counts.slice(index + 1)
  if (later.some((count) => typeof count === 'string' && count !== '<5')) return '–'
  const soFar = least(counts.slice(0, index + 1))
  const most = later.reduce<number>((sum, count) => sum + (typeof count === 'number' ? count : 4), 0)
  const percent = Math.floor((soFar / Math.max(1, soFar + most)) * 1000) / 10
  const isExact = counts.every((count) => typeof count === 'number')
  return `${isExact || most === 0 ? '' : '≥ '}${percent === 100 ? percent : percent.toFixed(1)} %`
}
