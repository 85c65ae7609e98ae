import { createHash } from 'node:crypto'

import { findingsOf } from '../findings.ts'
import { formatDay } from '../format.ts'
import { headlineOf } from '../headline.ts'
import type { PublishedRun } from '../published-run.ts'
import { chartCodeClasses, chartFields, chartKinds } from './chart-bars.ts'
import { chartDays } from './chart-days.ts'
import { chartDelays } from './chart-delays.ts'
import { html, Markup } from './markup.ts'
import { sectionClasses } from './section-classes.ts'
import { sectionHeadline } from './section-headline.ts'
import { sectionRules } from './section-rules.ts'
import { className, kindName } from './group-names.ts'
import { styles } from './styles.ts'
import { verdictTable } from './verdict-table.ts'
import { patterns } from './verdict-style.ts'

/** Nothing may be loaded, run or sent: the one style sheet is known by its digest. */
const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(styles).digest('base64')}'; base-uri 'none'; form-action 'none'`

/** Byte for byte what the digest is of. */
const styleSheet = new Markup(`<style>${styles}</style>`)

/**
 * A report as one self-contained page: no script, no request, every text escaped. It reads in light and dark, on a phone and on A4, and
 * every chart has its figures as text.
 */
export function toHtml(run: PublishedRun): string {
  const { title } = headlineOf(run)
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
      ${patterns}
      <main>
        ${sectionHeadline(run)} ${sectionClasses(run)} ${sectionCharts(run)} ${sectionRules(run)}
        ${sectionAbout(run)}
      </main>
    </body>
  </html> `
  return `<!doctype html>\n${page.toString()}`
}

function sectionCharts(run: PublishedRun): Markup | undefined {
  if (findingsOf(run).length === 0) return sectionCoverage(run)
  const days = chartDays(run)
  const fields = chartFields(run)
  const others = [chartCodeClasses(run), chartKinds(run), chartDelays(run)].filter(
    (chart) => chart !== undefined,
  )
  return html`<section aria-labelledby="charts">
    <h2 id="charts">Where it differs</h2>
    <div class="charts">
      ${days !== undefined && html`<div class="wide">${days}</div>`}
      ${fields !== undefined && html`<div>${fields}</div>`}
      ${others.length > 0 && html`<div class="stack">${others}</div>`}
    </div>
  </section>`
}

/** Where nothing differs: what was compared, so that a reader sees what the verdict covers. */
function sectionCoverage(run: PublishedRun): Markup | undefined {
  const { kinds, codeClasses, days } = run
  if (kinds.length + codeClasses.length + days.length === 0) return undefined
  return html`<section aria-labelledby="coverage">
    <h2 id="coverage">What was compared</h2>
    <div class="stack">
      ${kinds.length > 0 && verdictTable('Kind', kinds, kindName)}
      ${codeClasses.length > 0 && verdictTable('Class of code', codeClasses, className)} ${chartDelays(run)}
      ${
        days.length > 0 &&
        html`<details>
          <summary>Table: verdicts by day</summary>
          ${verdictTable('Day', days, formatDay)}
        </details>`
      }
    </div>
  </section>`
}

function sectionAbout({ exact }: PublishedRun): Markup {
  return html`<footer>
    <h2>About this report</h2>
    <p>
      V2 and V3 are two faces of one system, so nothing is written for a comparison: records are read on both
      sides, aligned by key, and set against each other field by field. Classes such as
      <code>length:21-50</code> or <code>time:+3600s</code> describe values; no value of a learner or a mark
      is in this file or in the file it was made from.
    </p>
    ${
      exact
        ? html`<p>
            <strong>Counts are exact.</strong> Small ones may point to a single learner: pass this file on
            only to people who may see such figures.
          </p>`
        : html`<p>
            Counts from 1 to 4 are shown as <b>&lt;5</b>. A count is shown as <b>≥ n</b> where the exact one
            would give a small count away; n follows from the counts that are shown. Do not publish several
            reports of nearly the same records: the small counts are in their differences.
          </p>`
    }
  </footer>`
}
