/** A line of the table of results. */
export interface Row {
  readonly bench: string
  readonly candidate: string
  readonly value: string
  readonly ratio: string
  readonly aim: string
  /** True if the value meets the aim, or `undefined` if there is no aim. */
  readonly met: boolean | undefined
}

/** Formats rows as an aligned table. */
export function formatTable(rows: readonly Row[]): string {
  const cells = [
    ['bench', 'candidate', 'value', 'ratio', 'aim', ''],
    ...rows.map((row) => [row.bench, row.candidate, row.value, row.ratio, row.aim, verdict(row.met)]),
  ]
  const widths = [0, 1, 2, 3, 4, 5].map((column) =>
    Math.max(...cells.map((line) => (line[column] ?? '').length)),
  )
  return cells
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function verdict(met: boolean | undefined): string {
  if (met === undefined) return ''
  return met ? 'met' : 'MISSED'
}
