import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

import type { Express } from 'express'

/**
 * The JavaScript module of the pages. The module draws charts from the figures in the page, and requests the page every five seconds to
 * replace the sections that have changed. Pages are complete without the module.
 */
const script = `
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
const clock = (s) => new Date(s * 1_000).toISOString().replace(/^\\d{4}-(\\d\\d)-(\\d\\d)T(.{5}).*$/, (_, month, day, time) => (time === '00:00' ? month + '-' + day : time))
let uplot

// A browser with a POSIX locale reports a language that Intl refuses (en-US@posix), and the charts use that language.
try {
  Intl.getCanonicalLocales(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en' })
}

// The time in the zone of the browser, or an empty text if the zone is UTC.
function local(at) {
  if (at.getTimezoneOffset() === 0) return ''
  const day = at.getDate() === at.getUTCDate() ? {} : { day: 'numeric', month: 'short' }
  return ' ' + at.toLocaleString(navigator.language, { ...day, hour: '2-digit', minute: '2-digit', timeZoneName: 'short' })
}

// Adds the local time to the times of a section.
function localize(root) {
  for (const time of root.querySelectorAll('time')) {
    const small = document.createElement('small')
    small.textContent = local(new Date(time.dateTime))
    time.append(small)
  }
}

const moment = (at) => at.toISOString().slice(0, 16).replace('T', ' ') + ' UTC' + local(at)

// Draws the charts of a section with the same time axis and one cursor. The legend shows the values at the cursor, or the totals.
async function draw(root) {
  const figures = [...root.querySelectorAll('[data-chart]')]
  if (figures.length === 0) return
  uplot ??= (await import(document.querySelector('link[rel=modulepreload]').href)).default
  for (const figure of figures) {
    const { fromMs, stepMs, points, series } = JSON.parse(figure.dataset.chart)
    const events = JSON.parse(figure.parentElement.dataset.events)
    const [room, at] = figure.querySelectorAll('.plot, .at')
    const values = [...figure.querySelectorAll('.legend b')]
    const totals = values.map((one) => one.textContent)
    const x = Array.from({ length: points }, (_, index) => (fromMs + index * stepMs) / 1_000)
    const axis = { stroke: style('--soft'), grid: { stroke: style('--line'), width: 1 }, ticks: { stroke: style('--line'), width: 1 } }
    const paths = uplot.paths.stepped({ align: 1 })
    const size = () => ({ width: Math.max(240, room.clientWidth), height: 220 })
    const annotate = ({ ctx, bbox, valToPos }) => {
      ctx.font = 12 * devicePixelRatio + 'px sans-serif'
      for (const [at, { fromMs: from, untilMs }] of events.entries()) {
        const [left, right] = [from, untilMs ?? from].map((ms) => Math.max(bbox.left, valToPos(ms / 1_000, 'x', true)))
        ctx.fillStyle = style(untilMs === undefined ? '--link' : '--badbg')
        ctx.fillRect(left, bbox.top, Math.max(2, Math.min(right, bbox.left + bbox.width) - left), bbox.height)
        // The number of the event in the table below the charts.
        ctx.fillStyle = style('--fg')
        ctx.fillText(at + 1, left + 4 * devicePixelRatio, bbox.top + (12 + (at % 5) * 14) * devicePixelRatio)
      }
    }
    const point = ({ cursor: { idx } }) => {
      values.forEach((one, line) => { one.textContent = idx == null ? totals[line] : series[line].values[idx].toLocaleString('en') })
      at.textContent = idx == null ? 'In total' : moment(new Date(fromMs + idx * stepMs))
    }
    figure.plot = new uplot({
      ...size(),
      legend: { show: false },
      cursor: { y: false, sync: { key: 'time' }, drag: { x: false, y: false } },
      hooks: { drawClear: [annotate], setCursor: [point] },
      scales: { x: { range: [x[0], (fromMs + points * stepMs) / 1_000] }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.05)] } },
      tzDate: (s) => uplot.tzDate(new Date(s * 1_000), 'UTC'),
      series: [{}, ...series.map(({ color, dash, sum }) => ({ stroke: style('--' + color), width: 2, dash, paths, show: sum > 0, points: { show: false } }))],
      axes: [{ ...axis, values: (_, all) => all.map(clock), space: 70 }, { ...axis, size: 64 }],
    }, [x, ...series.map((one) => one.values)], room)
    new ResizeObserver(() => figure.plot.setSize(size())).observe(room)
  }
}

const sections = (root) => [...root.querySelectorAll('section')]
// A refresh does not replace a section that has the focus, or that contains a field which the operator has changed.
const isInUse = (section) => section.contains(document.activeElement) ||
  [...section.querySelectorAll('input')].some((one) => one.checked !== one.defaultChecked || (one.type !== 'checkbox' && one.value !== one.defaultValue))
const nameOf = (section) => section.firstElementChild.textContent
const sent = new Map(sections(document).map((one) => [nameOf(one), one.outerHTML]))

async function refresh() {
  if (sent.size === 0 || document.hidden) return
  const reply = await fetch(location.href, { headers: { accept: 'text/html' } }).catch(() => undefined)
  if (reply === undefined || !reply.ok || reply.redirected) return
  const next = new DOMParser().parseFromString(await reply.text(), 'text/html')
  document.title = next.title
  // Only the server knows where a new section belongs, so the page is loaded again.
  if (sections(next).some((one) => !sent.has(nameOf(one))) && !sections(document).some(isInUse)) return location.reload()
  for (const fresh of sections(next)) {
    const [name, html] = [nameOf(fresh), fresh.outerHTML]
    const old = sections(document).find((one) => nameOf(one) === name)
    if (old === undefined || sent.get(name) === html || isInUse(old)) continue
    sent.set(name, html)
    const open = [...old.querySelectorAll('details')].map((one) => one.open)
    for (const figure of old.querySelectorAll('[data-chart]')) figure.plot?.destroy()
    old.replaceWith(fresh)
    ;[...fresh.querySelectorAll('details')].forEach((one, at) => { one.open = open[at] ?? false })
    localize(fresh)
    await draw(fresh)
  }
}

localize(document)
await draw(document)
setInterval(refresh, 5_000)
`

const styles = `
:root{color-scheme:light dark;--bg:#fff;--panel:#f6f8fa;--fg:#1b2430;--soft:#4d5a69;--line:#d3d9e0;--code:#eef1f5;--link:#0b57d0;--on:#fff;--good:#13703a;--bad:#b3261e;--note:#7a5700;--goodbg:#e5f4ea;--badbg:#fdeceA;--notebg:#fdf3dc;
--confirmed:#13703a;--refused:#b45309;--unknown:#9333ea;--parked:#0b57d0;--open:#616c79;--not-applied:#b3261e}
@media (prefers-color-scheme:dark){:root{--bg:#12171d;--panel:#1a2129;--fg:#e7ecf2;--soft:#a9b6c4;--line:#36424f;--code:#232c36;--link:#8ab4f8;--on:#0d1117;--good:#7ddba2;--bad:#ffa498;--note:#f0c66b;--goodbg:#16301f;--badbg:#3a1a17;--notebg:#332a12;
--confirmed:#6fd196;--refused:#f0a24a;--unknown:#c69bf5;--parked:#8ab4f8;--open:#a3b0be;--not-applied:#f2a3a0}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums lining-nums}
h1,h2,h3,p,dl,dd,ul,ol,figure{margin:0;padding:0}
ul{list-style:none}
a{color:var(--link);text-underline-offset:.15em}
a:focus-visible,button:focus-visible,input:focus-visible,select:focus-visible,textarea:focus-visible,summary:focus-visible{outline:3px solid var(--link);outline-offset:2px}
main:focus{outline:none}
h1{font-size:1.75rem;line-height:1.2;letter-spacing:-.015em;overflow-wrap:anywhere}
h2{font-size:1.2rem;line-height:1.3}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.86em}
code{background:var(--code);border-radius:4px;padding:.1em .3em;overflow-wrap:anywhere}
pre{margin:0;white-space:pre-wrap;background:var(--code);border-radius:8px;padding:.9rem;line-height:1.45}
pre+pre{margin-top:.5rem}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
header{display:flex;flex-wrap:wrap;align-items:center;gap:.25rem 1.5rem;padding:.6rem 1.5rem;border-bottom:1px solid var(--line);background:var(--panel)}
.brand{font-weight:700;color:var(--fg);text-decoration:none}
nav ul{display:flex;flex-wrap:wrap;gap:.1rem .25rem}
nav a{display:block;padding:.35rem .65rem;border-radius:6px;text-decoration:none}
nav a:hover{text-decoration:underline}
nav a[aria-current]{background:var(--link);color:var(--on)}
.who{display:flex;align-items:center;gap:.75rem;margin-left:auto;color:var(--soft);font-size:.9rem}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:.5rem;background:var(--bg);padding:.4rem .8rem;z-index:1}
main{max-width:100rem;margin:0 auto;padding:1.5rem 1.5rem 4rem;display:grid;gap:1.5rem;grid-template-columns:minmax(0,1fr);overflow-wrap:anywhere}
section{display:grid;gap:.75rem;grid-template-columns:minmax(0,1fr);align-content:start}
.columns{display:grid;gap:1.5rem 2.5rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,34rem),1fr))}
.soft,.empty,dt,figcaption,caption{color:var(--soft)}
.empty{padding:.25rem 0}
.notice{display:grid;gap:.2rem;padding:.6rem .9rem;border-radius:8px;border-left:5px solid;overflow-wrap:anywhere;white-space:pre-line}
.notice:is(.good,.bad,.note){color:var(--fg)}
.notice.good{border-color:var(--good);background:var(--goodbg)}.notice.bad{border-color:var(--bad);background:var(--badbg)}.notice.note{border-color:var(--note);background:var(--notebg)}
.what{font-weight:600}.good>.what{color:var(--good)}.bad>.what{color:var(--bad)}.note>.what{color:var(--note)}
.alarms{display:grid;gap:.5rem}.alarms li{border-radius:8px;overflow:hidden}.alarms .notice{border-radius:0}.alarms .notice+.notice{display:flex;flex-wrap:wrap;gap:.2rem .75rem}.alarms li:first-child>:first-child .what{font-size:1.25rem;line-height:1.3}
.good{color:var(--good)}.bad{color:var(--bad)}.note{color:var(--note)}.plain{color:var(--soft)}
.badge{display:inline-block;border:1px solid;border-radius:1rem;padding:0 .6rem;font-size:.86rem;white-space:nowrap}
.facts{display:flex;flex-wrap:wrap;gap:.75rem 2.25rem}
.facts dt{font-size:.86rem}.facts dd{overflow-wrap:anywhere}
.tabs{display:flex;flex-wrap:wrap;gap:.25rem}
.tabs a{padding:.3rem .7rem;border:1px solid var(--line);border-radius:6px;text-decoration:none}
.tabs a[aria-current]{background:var(--link);color:var(--on);border-color:var(--link)}
.rows{container-type:inline-size}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;padding:.45rem 1rem .45rem 0;border-bottom:1px solid var(--line);vertical-align:top;font-weight:400}
tbody th{font-weight:500}
thead th{color:var(--soft)}
td,tbody th{min-width:5.5rem}
tbody :is(th,td:first-of-type) code{overflow-wrap:break-word}
td button{white-space:nowrap}
time{white-space:nowrap}time small{color:var(--soft)}
.n.n{text-align:right;white-space:nowrap;min-width:0}
@container (max-width:60rem){
table,tbody,tr,tbody th,td{display:block}
thead,.missing{display:none}
tbody{display:grid;gap:.75rem}
tr{display:flex;flex-wrap:wrap;gap:.5rem 1.5rem;padding:.75rem .9rem;border:1px solid var(--line);border-radius:8px;background:var(--panel)}
tbody th{flex-basis:100%;font-size:1rem;font-weight:600}
tbody th,td{padding:0;border:0;max-width:100%;white-space:normal;min-width:0}
.n.n{text-align:left}
td::before,tbody th::before{content:attr(data-label);display:block;color:var(--soft);font-size:.86em;font-weight:400}
}
.chart{display:grid;gap:.5rem;align-content:start;grid-template-columns:minmax(0,1fr)}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;align-items:baseline}
.at{width:100%;color:var(--soft);font-size:.9rem}
.key{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;background:var(--key)}
.confirmed{--key:var(--confirmed)}.refused{--key:var(--refused)}.unknown{--key:var(--unknown)}.parked{--key:var(--parked)}.open{--key:var(--open)}.not-applied{--key:var(--not-applied)}
.balance{display:grid;gap:.5rem;padding:.9rem 1rem;border:1px solid var(--line);border-radius:8px}
.balance h3{font-size:1rem;font-weight:400}.balance h3 a{font-weight:600;margin-right:.5rem}
.balance svg{width:100%;height:1.1rem;border-radius:4px}.balance rect{fill:var(--key)}
details>summary{cursor:pointer;color:var(--link);width:fit-content}
details[open]>summary{margin-bottom:.5rem}
.way{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem}
.way li{padding:.25rem .9rem;border:1px solid var(--line);border-radius:1rem;color:var(--soft)}
.way [aria-current]{background:var(--link);border-color:var(--link);color:var(--on);font-weight:600}
.way .done{border-color:var(--good);color:var(--good)}.way .next{border-style:dashed;border-color:var(--link)}
mark{background:var(--note);color:var(--bg);border-radius:3px}
.act{display:grid;gap:.75rem;justify-items:start;padding:1rem;border:1px solid var(--line);border-radius:8px;background:var(--panel)}
.field{display:grid;gap:.2rem;width:100%;max-width:36rem}
.act>.rows{justify-self:stretch}
.field:only-child,.field:has(textarea){grid-column:1/-1}.field:has(textarea){max-width:none}
.fields{display:grid;align-items:end;gap:.75rem 1.5rem;grid-template-columns:repeat(auto-fill,minmax(min(100%,17rem),1fr));width:100%}
.json{background:none;padding:0;display:inline-block}
.badge+.badge{margin-left:.3rem}
.row{display:flex;flex-wrap:wrap;gap:.75rem;align-items:center}
.field:has([type=checkbox]){display:flex;flex-direction:row-reverse;justify-content:start;gap:.5rem}
input,select,textarea,button{font:inherit;color:inherit}
input:not([type=checkbox]),select,textarea{background:var(--bg);border:1px solid var(--soft);border-radius:6px;padding:.4rem .6rem;min-width:0;width:100%}
input[type=number]{max-width:9rem}
.row input:not([type=checkbox]){width:auto}
input[type=checkbox]{width:1.1rem;height:1.1rem;accent-color:var(--link);margin:0}
button{background:var(--link);color:var(--on);border:1px solid var(--link);border-radius:6px;padding:.45rem 1rem;cursor:pointer}
button:disabled{opacity:.6;cursor:default}
button.large{font-size:1.15rem;padding:.7rem 1.6rem}
button.danger{background:var(--bad);border-color:var(--bad)}
button.quiet{background:none;color:var(--link);border-color:var(--line);padding:.25rem .7rem}
@media (max-width:40rem){header{padding:.6rem 1rem}main{padding:1rem 1rem 3rem}.who{margin-left:0;width:100%;justify-content:space-between}}
`

const packages = createRequire(import.meta.url)
const ofPackage = (path: string): Buffer => readFileSync(packages.resolve(path))

const javascript = 'text/javascript; charset=utf-8'
const files = {
  'console.css': { type: 'text/css; charset=utf-8', body: Buffer.from(styles) },
  'console.js': { type: javascript, body: Buffer.from(script) },
  'uplot.js': { type: javascript, body: ofPackage('uplot/dist/uPlot.esm.js') },
  'uplot.css': { type: 'text/css; charset=utf-8', body: ofPackage('uplot/dist/uPlot.min.css') },
}

/** Returns a path with a hash of the file's content, so that browsers can cache the file without a time limit. */
export const assetPath = (name: keyof typeof files): string =>
  `/assets/${createHash('sha256').update(files[name].body).digest('hex').slice(0, 16)}/${name}`

/** Serves the files of the pages, which need no login. */
export function serveAssets(app: Express): void {
  for (const [name, { type, body }] of Object.entries(files))
    app.get(assetPath(name as keyof typeof files), (_request, response) => {
      response
        .set({ 'Content-Type': type, 'Cache-Control': 'public, max-age=31536000, immutable' })
        .send(body)
    })
}
