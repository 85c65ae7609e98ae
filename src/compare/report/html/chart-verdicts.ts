import { formatCell, formatShare } from '../format.ts'
import { leastOf, type PublishedRun } from '../published-run.ts'
import { html, type Markup } from './markup.ts'
import { verdictStyles } from './verdict-style.ts'

/** Percent of the width that every verdict with a record gets, so that none vanishes. */
const LEAST_WIDTH = 0.8

/** One bar of all verdicts, and their counts below it. */
export function chartVerdicts({ verdicts, compared }: PublishedRun): Markup {
  const counts = verdictStyles.map((style) => ({ ...style, count: verdicts[style.verdict] }))
  const total = counts.reduce((sum, { count }) => sum + leastOf(count), 0)
  const shares = counts.map(({ count }) =>
    count === 0 ? 0 : Math.max(LEAST_WIDTH, (leastOf(count) / Math.max(1, total)) * 100),
  )
  const whole = shares.reduce((sum, share) => sum + share, 0)
  const words = counts
    .filter(({ count }) => count !== 0)
    .map(({ label, count }) => `${label} ${formatCell(count)}`)
    .join(', ')
  let x = 0
  return html`<figure class="verdicts">
    ${
      whole > 0 &&
      html`<svg class="bar" role="img" aria-label="Verdicts: ${words}" focusable="false">
        ${counts.map(({ verdict }, index) => {
          const width = ((shares[index] ?? 0) / whole) * 100
          const start = x
          x += width
          return (
            width > 0 &&
            html`<rect
              class="f-${verdict} edge"
              x="${start.toFixed(3)}%"
              width="${width.toFixed(3)}%"
              height="100%"
            />`
          )
        })}
      </svg>`
    }
    <dl class="tiles">
      ${counts.map(
        ({ verdict, label, meaning, count }) =>
          html`<div class="tile${count === 0 && ' zero'}">
            <dt>
              <svg class="swatch" aria-hidden="true" focusable="false">
                <rect class="f-${verdict}" width="100%" height="100%" /></svg
              >${label}
            </dt>
            <dd>
              <b>${formatCell(count)}</b>
              <span class="share">${count !== 0 && formatShare(count, compared)}</span>
            </dd>
            <dd class="note">${meaning}</dd>
          </div>`,
      )}
    </dl>
  </figure>`
}
