/** The lines in one panel of a chart, which all cover the same period. */
export interface Series {
  readonly title: string
  readonly lines: readonly (readonly number[])[]
}

const [WIDTH, HEIGHT, LEFT, PANEL, GAP] = [720, 120, 56, 180, 40]
const colours = ['#1f5fbf', '#c8401a', '#2e7d32']

/** Draws panels of lines below each other, as an SVG document. Every vertical axis begins at 0. */
export function drawChart(title: string, minutes: number, panels: readonly Series[]): string {
  const drawn = panels.map(({ title: name, lines }, at) => {
    const top = Math.max(1, ...lines.flat())
    const y = GAP + at * PANEL + 20
    const toPoint = (value: number, index: number, { length }: readonly number[]): string =>
      `${(LEFT + (index / Math.max(1, length - 1)) * WIDTH).toFixed(1)},${(y + HEIGHT - (value / top) * HEIGHT).toFixed(1)}`
    const paths = lines.map(
      (line, number) =>
        `<polyline fill="none" stroke="${colours[number] ?? '#000'}" stroke-width="1.5" points="${line.map(toPoint).join(' ')}"/>`,
    )
    return `<text x="0" y="${y - 8}" font-weight="bold">${name}</text>
<path d="M${LEFT} ${y}V${y + HEIGHT}H${LEFT + WIDTH}" fill="none" stroke="#999"/>
<text x="${LEFT - 6}" y="${y + 10}" text-anchor="end">${top.toFixed(top < 10 ? 1 : 0)}</text>
<text x="${LEFT - 6}" y="${y + HEIGHT}" text-anchor="end">0</text>
<text x="${LEFT}" y="${y + HEIGHT + 16}">0 min</text>
<text x="${LEFT + WIDTH}" y="${y + HEIGHT + 16}" text-anchor="end">${minutes} min</text>
${paths.join('\n')}`
  })
  const size = `${LEFT + WIDTH + 20} ${GAP + panels.length * PANEL}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 0 ${size}" font-family="sans-serif" font-size="12">
<rect x="-10" width="100%" height="100%" fill="#fff"/>
<text x="0" y="20" font-size="15">${title}</text>
${drawn.join('\n')}
</svg>
`
}
