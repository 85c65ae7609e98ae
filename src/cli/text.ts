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

/** Prints the result of a command: one JSON document on one line, or a text. */
export function print(
  { json }: { readonly json?: boolean | undefined },
  value: unknown,
  text: () => string,
): void {
  console.log(json === true ? JSON.stringify(value) : text())
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
  return text.replaceAll(UNSAFE, '?')
}

/** As `formatGivenText`, for a text that has lines of its own. */
export function formatGivenLines(text: string): string {
  return text.split('\n').map(formatGivenText).join('\n')
}

/** A document for programs, indented; JSON itself leaves some of these characters as they are. */
export function formatJson(value: unknown): string {
  return JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => line.replaceAll(UNSAFE, escapeUnits))
    .join('\n')
}

const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

function escapeUnits(text: string): string {
  return text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
