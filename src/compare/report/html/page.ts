import { createHash } from 'node:crypto'

import { gravities, gravityTexts } from '../explanations.ts'
import { formatCount, formatDuration, formatInstant, formatLongDay } from '../format.ts'
import type { Report } from '../report.ts'
import { sumOf } from './charts.ts'
import { html, Markup } from './markup.ts'
import { chartSection, classSection, ruleSections, trustSection, verdictSection } from './sections.ts'

/** The style sheet of the page, inserted unchanged because the Content-Security-Policy contains its digest. */
const styles = `
:root{color-scheme:light dark;--bg:#fff;--fg:#1b2430;--soft:#526070;--line:#dde2e8;--code:#eef1f5;--link:#0b57d0;--good:#13703a;--bad:#b3261e;--note:#7a5700;
--same:#8a97a6;--equivalent:#b6c2cf;--differs:#c8401a;--onlyV2:#1f5fbf;--onlyV3:#7b3fb3;--unknown:#616c79}
@media screen and (prefers-color-scheme:dark){:root{--bg:#12171d;--fg:#e7ecf2;--soft:#a3b0be;--line:#2d3742;--code:#232c36;--link:#8ab4f8;--good:#6fd196;--bad:#ff9a8a;--note:#f0c66b;
--same:#6d7b8a;--equivalent:#46525f;--differs:#f0744a;--onlyV2:#6aa3f5;--onlyV3:#bd8cf0;--unknown:#96a1ae}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums lining-nums}
main{max-width:66rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1,h2,h3,p,dl,dd,ul,ol,figure{margin:0;padding:0}
ul,ol{list-style:none}
h1{font-size:2.2rem;line-height:1.2;letter-spacing:-.02em}
h2{font-size:1.35rem;line-height:1.25;margin-bottom:.35rem}
h3{font-size:1rem;line-height:1.35;overflow-wrap:anywhere}
section,footer{margin-top:2.5rem}
code{font:.86em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;background:var(--code);border-radius:4px;padding:.1em .35em;overflow-wrap:anywhere}
.lead,figcaption p,.note,dt{color:var(--soft)}
.note,figcaption p,dt,footer{font-size:.88rem}
.lead{margin-bottom:.75rem;max-width:46rem}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.outcome{margin-top:.5rem;padding:1.25rem;border:1px solid var(--line);border-left:6px solid;border-radius:8px;overflow-wrap:anywhere}
.outcome p{color:var(--fg)}.outcome .note{color:var(--soft);margin-top:.4rem}.outcome .limit{margin-top:.4rem;font-weight:600}
.findings{margin-top:.75rem;display:grid;gap:.25rem}.findings li{display:grid;grid-template-columns:19rem minmax(0,1fr);gap:0 .75rem;color:var(--fg)}.findings span{color:var(--soft)}
.good,.ready{color:var(--good)}.bad,.differs{color:var(--bad)}strong.note,.inconclusive{color:var(--note)}
.facts{display:flex;flex-wrap:wrap;gap:.6rem 1.8rem;margin-top:1rem}
.facts dd{overflow-wrap:anywhere}
.bar{display:block;width:100%;min-width:5rem;height:.8rem;border-radius:3px}[role=img].bar{height:1.6rem;margin-bottom:.75rem}
.f-same{fill:var(--same)}.f-equivalent{fill:var(--equivalent)}.f-differs{fill:var(--differs)}.f-onlyV2,.f-delay{fill:var(--onlyV2)}.f-onlyV3{fill:var(--onlyV3)}.f-unknown{fill:var(--unknown)}
.swatch{width:.8rem;height:.8rem}
.classes li{padding:1rem 0;border-top:1px solid var(--line)}
.classes .bar{height:.4rem;margin:.35rem 0}
.classes dl{display:grid;grid-template-columns:7rem minmax(0,1fr);gap:.2rem .5rem;margin-top:.35rem;font-size:.92rem}
.chart{margin-top:1.75rem}figcaption{margin-bottom:.5rem}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;font-size:.88rem;margin-bottom:.5rem}
.legend li{display:flex;align-items:center;gap:.4rem}
.columns{display:block;width:100%;height:12rem;overflow:visible}
.grid{stroke:var(--line)}.axis{fill:var(--soft);font-size:12px}
.ends{display:flex;justify-content:space-between;padding-left:6%;font-size:.82rem;color:var(--soft)}
.scroll{overflow:auto}.chart .scroll,details .scroll{max-height:26rem}
.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--link);outline-offset:2px}
table{width:100%;border-collapse:collapse;font-size:.88rem}
th,td{text-align:left;padding:.4rem .75rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:top;font-weight:400}
thead th{color:var(--soft)}
.n{text-align:right;white-space:nowrap;padding:.4rem 0 .4rem .75rem}
details{margin-top:.75rem}
summary{cursor:pointer;color:var(--link);width:fit-content}
footer{border-top:1px solid var(--line);padding-top:1.25rem;color:var(--soft)}
footer p{max-width:52rem;margin-top:.4rem}
@media screen and (max-width:40rem){main{padding:1rem 1rem 3rem}.findings li,.classes dl{grid-template-columns:minmax(0,1fr)}.outcome{padding:1rem}}
@media print{html{font-size:9pt}@page{size:A4;margin:13mm}body{font-size:9pt;line-height:1.4;-webkit-print-color-adjust:exact;print-color-adjust:exact}main{max-width:none;padding:0}
section,footer{margin-top:7mm}h2,h3,figcaption,.lead{break-after:avoid}.classes li,.outcome,tr{break-inside:avoid}.columns{height:38mm}
.scroll,.chart .scroll{overflow:visible;max-height:none}details:not([open]){display:none}}
`

/** The Content-Security-Policy of the page. It forbids all loading, scripts and forms, and allows only the style sheet with this digest. */
export const reportPolicy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(styles).digest('base64')}'; base-uri 'none'; form-action 'none'`

const styleSheet = new Markup(`<style>${styles}</style>`)

const sources = {
  reads: 'both services were read',
  recording: 'recorded exchanges',
  live: 'live traffic of a running adapter',
}

/** Formats a report as one page without scripts or requests. Each chart also has its figures as text. */
export function toHtml(report: Report): string {
  const { title, outcome, headline, limits, classes, run, exact } = report
  const lasted = formatDuration(Date.parse(run.endedAt) - Date.parse(run.startedAt))
  const isLive = run.kind === 'live'
  const [v2, v3] = [run.services?.v2 ?? null, run.services?.v3 ?? null]
  const facts = [
    run.partner !== null && ['Partner', run.partner],
    v2 !== null && ['V2', v2],
    v3 !== null && ['V3', v3],
    !isLive && ['Records of', `${formatLongDay(run.from)} – ${formatLongDay(run.to)}`],
    isLive && ['Compared', `${formatInstant(run.startedAt)} – ${formatInstant(run.endedAt)}`],
    ['Source', sources[run.kind]],
    !isLive && ['Ended', `${formatInstant(run.endedAt)}, after ${lasted}`],
    ['Run', run.run],
  ].filter((fact) => fact !== false)
  const findings = gravities.flatMap((gravity) => {
    const own = classes.filter((one) => one.gravity === gravity)
    return own.length === 0 ? [] : [{ gravity, own, count: sumOf(own.map(({ count }) => count)) }]
  })
  const page = html`<html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta http-equiv="Content-Security-Policy" content="${reportPolicy}" />
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
            ${
              findings.length > 0 &&
              html`<ul class="findings">
                  ${findings.map(
                    ({ gravity, own, count }) =>
                      html`<li>
                        <strong>${gravityTexts[gravity]}: ${formatCount(count)}</strong>
                        <span
                          >${own[0]?.explanation.title}${own.length > 1 && `, and ${own.length - 1} more`}</span
                        >
                      </li>`,
                  )}
                </ul>
                <p class="note">
                  Differences by their meaning for a school, the most serious first. A record with two
                  differences counts twice.
                </p>`
            }
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
            V2 and V3 are two interfaces of one system, so a comparison writes nothing. It reads records on
            both sides, aligns them by key and compares them field by field. Classes such as
            <code>length:21-50</code> or <code>time:+3600s</code> describe values without showing them.
            Neither this file nor the file of the run contains a value of a learner or a mark.
          </p>
          <p>
            ${
              exact
                ? html`<strong>Counts are exact.</strong> Small counts may point to a single learner. Pass
                    this file on only to people who may see such figures.`
                : 'Counts are rounded to multiples of 5, and only 0 is shown as 0. Shares and sums come from the rounded counts. Do not publish several reports of nearly the same records.'
            }
          </p>
        </footer>
      </main>
    </body>
  </html> `
  return `<!doctype html>\n${page.toString()}`
}
