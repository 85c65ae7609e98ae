/** Rows as lines with aligned columns, two blanks apart. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** `1 batch`, `1,200 batches`. */
export function formatCounted(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : several}`
}

/** A time in ISO 8601; nothing for none. */
export function formatTime(ms: number | undefined): string {
  return ms === undefined ? '' : new Date(ms).toISOString()
}

/** Text that others wrote, on one line: a terminal would act on control characters, and others change the direction of what follows. */
export function formatGivenText(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
}
