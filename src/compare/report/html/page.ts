import { createHash } from 'node:crypto'

import { formatDuration, formatInstant, formatLongDay } from '../format.ts'
import type { Report } from '../report.ts'
import { html, Markup } from './markup.ts'
import { chartSection, classSection, ruleSections, trustSection, verdictSection } from './sections.ts'
import { styles } from './styles.ts'

/** Nothing may be loaded, run or sent: the one style sheet is known by its digest. */
const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(styles).digest('base64')}'; base-uri 'none'; form-action 'none'`

/** Byte for byte what the digest is of. */
const styleSheet = new Markup(`<style>${styles}</style>`)

const sources = {
  reads: 'both services were read',
  recording: 'recorded exchanges',
  live: 'live traffic of a running adapter',
}

/**
 * A report as one self-contained page: no script, no request, every text escaped. It reads in light and dark, on a phone and on A4, and
 * every chart has its figures as text.
 */
export function toHtml(report: Report): string {
  const { title, outcome, headline, limits, run, exact } = report
  const lasted = formatDuration(Date.parse(run.endedAt) - Date.parse(run.startedAt))
  const facts = [
    run.partner !== null && ['Partner', run.partner],
    ['Records of', `${formatLongDay(run.from)} – ${formatLongDay(run.to)}`],
    ['Run', run.run],
    ['Source', sources[run.kind]],
    ['Ended', `${formatInstant(run.endedAt)}, after ${lasted}`],
  ].filter((fact) => fact !== false)
  const page = html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta http-equiv="Content-Security-Policy" content="${policy}" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <meta name="referrer" content="no-referrer" />
      <title>${title}: V2 and V3${run.partner !== null && ` of ${run.partner}`}, ${run.run}</title>
      ${styleSheet}
    </head>
    <body>
      <main>
        <header>
          <p class="note">Comparison of V2 with V3 through Markbridge</p>
          <div class="outcome ${outcome}">
            <h1>${title}</h1>
            <p>${headline}</p>
            ${limits.map((limit) => html`<p class="limit">${limit}</p>`)}
          </div>
          <dl class="facts">
            ${facts.map(
              ([name, value]) =>
                html`<div>
                  <dt>${name}</dt>
                  <dd>${value}</dd>
                </div>`,
            )}
          </dl>
        </header>
        ${verdictSection(run)} ${trustSection(report)} ${classSection(report)} ${chartSection(report)}
        ${ruleSections(report)}
        <footer>
          <h2>About this report</h2>
          <p>
            V2 and V3 are two faces of one system, so nothing is written for a comparison: records are read on
            both sides, aligned by key, and set against each other field by field. Classes such as
            <code>length:21-50</code> or <code>time:+3600s</code> describe values; no value of a learner or a
            mark is in this file or in the file it was made from.
          </p>
          <p>
            ${
              exact
                ? html`<strong>Counts are exact.</strong> Small ones may point to a single learner: pass this
                    file on only to people who may see such figures.`
                : 'Counts are rounded to multiples of 5, and only 0 is shown as 0; shares and sums are those of the rounded counts. Do not publish several reports of nearly the same records.'
            }
          </p>
        </footer>
      </main>
    </body>
  </html> `
  return `<!doctype html>\n${page.toString()}`
}
