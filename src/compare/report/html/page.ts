import { createHash } from 'node:crypto'

import { formatLongDay } from '../format.ts'
import { headlineOf } from '../headline.ts'
import { reportedClasses, type PublishedRun } from '../published-run.ts'
import { patterns } from './bars.ts'
import { chartDays, chartDelays, chartFields, chartGroups } from './charts.ts'
import { html, Markup } from './markup.ts'
import { sectionClasses, sectionHeadline, sectionRules } from './sections.ts'
import { styles } from './styles.ts'
import { verdictTable } from './tables.ts'

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
        ${sectionHeadline(run)} ${sectionClasses(run)}
        ${reportedClasses(run).length === 0 ? sectionCoverage(run) : sectionCharts(run)} ${sectionRules(run)}
        ${sectionAbout(run)}
      </main>
    </body>
  </html> `
  return `<!doctype html>\n${page.toString()}`
}

function sectionCharts(run: PublishedRun): Markup {
  const days = chartDays(run)
  const fields = chartFields(run)
  const others = [
    chartGroups('By code class', 'Class', run.codeClasses, className),
    chartGroups('By kind', 'Kind', run.kinds, kindName),
    chartDelays(run),
  ]
  return html`<section aria-labelledby="charts">
    <h2 id="charts">Where it differs</h2>
    <div class="charts">
      ${days !== undefined && html`<div class="wide">${days}</div>`}
      ${fields !== undefined && html`<div>${fields}</div>`}
      ${others.some((chart) => chart !== undefined) && html`<div class="stack">${others}</div>`}
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
          ${verdictTable('Day', days, formatLongDay)}
        </details>`
      }
    </div>
  </section>`
}

const names = new Map([
  ['code:present', 'Present codes'],
  ['code:absent', 'Absent codes'],
  ['code:neither', 'Codes that are neither'],
  ['marks', 'Marks'],
  ['registrations', 'Registrations'],
  ['batch', 'Batches of marks'],
  ['record', 'Single marks'],
  ['readFilter', 'Reads by filter'],
  ['readKey', 'Reads by key'],
])
const checks = new Map([
  ['reply', 'reply'],
  ['visible', 'seen on V3'],
  ['readBack', 'read back on V2'],
  ['answers', 'answers'],
])

const className = (name: string): string => names.get(name) ?? name

/** A kind of record or request in words, for live checks with what was checked; a name that is not known stays. */
function kindName(name: string): string {
  const [kind = '', check] = name.split('/')
  if (check === undefined) return className(kind)
  const checked = checks.get(check)
  return checked === undefined ? name : `${className(kind)}, ${checked}`
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
            Counts are rounded to multiples of 5, and only 0 is shown as 0; shares and sums are those of the
            rounded counts. Do not publish several reports of nearly the same records.
          </p>`
    }
  </footer>`
}
