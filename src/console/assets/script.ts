/**
 * The module that a browser runs. Pages are whole without it: it draws charts from the figures that are in the page, and asks for the page
 * again every five seconds, to replace the sections that have changed.
 */
export const script = `
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
const clock = (s) => new Date(s * 1_000).toISOString().replace(/^\\d{4}-(\\d\\d)-(\\d\\d)T(.{5}).*$/, (_, month, day, time) => (time === '00:00' ? month + '-' + day : time))
let uplot

async function draw(root) {
  const figures = [...root.querySelectorAll('[data-chart]')]
  if (figures.length === 0) return
  uplot ??= (await import(document.querySelector('link[rel=modulepreload]').href)).default
  for (const figure of figures) {
    const { x, series } = JSON.parse(figure.dataset.chart)
    const axis = { stroke: style('--soft'), grid: { stroke: style('--line'), width: 1 }, ticks: { stroke: style('--line'), width: 1 } }
    const paths = uplot.paths.stepped({ align: 1 })
    const room = figure.querySelector('.plot')
    const size = () => ({ width: Math.max(240, room.clientWidth), height: 220 })
    const plot = new uplot({
      ...size(),
      scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.05)] } },
      tzDate: (s) => uplot.tzDate(new Date(s * 1_000), 'UTC'),
      series: [{ label: 'UTC', value: (_, s) => (s === null ? '–' : clock(s)) }, ...series.map(({ label, color, dash }) => ({ label, stroke: style(color), width: 2, dash, paths, points: { show: false } }))],
      axes: [{ ...axis, values: (_, all) => all.map(clock), space: 70 }, { ...axis, size: 64 }],
    }, [x, ...series.map(({ values }) => values)], room)
    new ResizeObserver(() => plot.setSize(size())).observe(room)
  }
}

// A form stays as it is, with what is typed into it.
const sections = (root) => [...root.querySelectorAll('main[data-live] section')].filter((one) => one.querySelector('form') === null)
const nameOf = (section) => section.firstElementChild.textContent
const sent = new Map(sections(document).map((one) => [nameOf(one), one.outerHTML]))

async function refresh() {
  if (sent.size === 0 || document.hidden) return
  const reply = await fetch(location.href, { headers: { accept: 'text/html' } }).catch(() => undefined)
  if (reply === undefined || !reply.ok || reply.redirected) return
  const next = new DOMParser().parseFromString(await reply.text(), 'text/html')
  for (const fresh of sections(next)) {
    const [name, html] = [nameOf(fresh), fresh.outerHTML]
    const old = sections(document).find((one) => nameOf(one) === name)
    // An element with the focus inside stays as it is.
    if (old === undefined || sent.get(name) === html || old.contains(document.activeElement)) continue
    sent.set(name, html)
    const open = [...old.querySelectorAll('details')].map((one) => one.open)
    old.replaceWith(fresh)
    ;[...fresh.querySelectorAll('details')].forEach((one, at) => { one.open = open[at] ?? false })
    await draw(fresh)
  }
}

await draw(document)
setInterval(refresh, 5_000)
for (const all of document.querySelectorAll('[data-selects]'))
  all.addEventListener('change', () => {
    for (const one of document.querySelectorAll(all.dataset.selects)) one.checked = all.checked
  })
`
