import type { Command } from 'commander'

/** The heading of a column, and what stands in it; nothing for undefined. */
type Column<Row> = readonly [heading: string, cellOf: (row: Row) => string | number | undefined]

/** Rows as lines with aligned columns, two blanks apart, below their headings. */
export function formatTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const cells = columns.map(([heading, cellOf]) => [heading, ...rows.map((row) => String(cellOf(row) ?? ''))])
  const padded = cells.map((column) => {
    const width = Math.max(...column.map((cell) => cell.length))
    return column.map((cell) => cell.padEnd(width))
  })
  return ['', ...rows]
    .map((_, line) =>
      padded
        .map((column) => column[line])
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** What a command has found or done. */
export interface Answer {
  /** Printed with `--json`, on one line. */
  readonly document: unknown
  /** Printed without it. */
  readonly text: () => string
  /** Exit status; default 0. */
  readonly status?: number
  /** True: what was asked for was not done, so the text goes to standard error. */
  readonly isRefusal?: boolean
}

/** Makes the action of a command whose whole output is one answer. */
export function answerWith<Args extends readonly unknown[]>(
  exitWith: (status: number) => void,
  work: (...args: Args) => Promise<Answer>,
): (this: Command, ...args: Args) => Promise<void> {
  return async function (...args) {
    const answer = await work(...args)
    print(this.opts<{ json?: boolean }>(), answer)
    exitWith(answer.status ?? 0)
  }
}

/** Prints an answer as the flags of its command ask for it. */
export function print(
  { json }: { readonly json?: boolean | undefined },
  { document, text, isRefusal = false }: Answer,
): void {
  if (json === true) console.log(JSON.stringify(document))
  else if (isRefusal) console.error(`markbridge: ${text()}`)
  else console.log(text())
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
