import { relative } from 'node:path'

import type { Command } from 'commander'

import { foundConfig, readEnvironment } from '../config/environment.ts'

/** A column of a table. An `undefined` cell stays empty. */
type Column<Row> = readonly [heading: string, cellOf: (row: Row) => string | number | undefined]

/** Formats rows as aligned columns with headings. Two spaces separate the columns. */
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

export interface Answer {
  readonly document: unknown
  readonly text: () => string
  /** The exit status. Default: 0. */
  readonly status?: number
  /** True if the command refused to do its work, so that the text goes to standard error. */
  readonly isRefusal?: boolean
}

export function answerWith<Args extends readonly unknown[]>(
  exitWith: (status: number) => void,
  work: (...args: Args) => Promise<Answer>,
): (this: Command, ...args: Args) => Promise<void> {
  return async function (...args) {
    const answer = await work(...args)
    print(this, answer)
    exitWith(answer.status ?? 0)
  }
}

export function print(command: Command, { document, text, isRefusal = false }: Answer): void {
  const flags = command.opts<{ json?: boolean; config?: string; journal?: string; dir?: string }>()
  if (flags.json === true) console.log(formatJson(document))
  else if (isRefusal) console.error(`markbridge: ${formatHints(text(), flags)}`)
  else console.log(formatHints(text(), flags))
}

/** Formats a count such as `1 batch` or `1,200 batches`. */
export function formatCounted(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : several}`
}

export function formatTime(ms: number | undefined): string {
  return ms === undefined ? '' : new Date(ms).toISOString()
}

/**
 * Makes text from other programs safe to print on one line. A terminal would act on control characters, and some characters change the
 * direction of the text after them.
 */
export function formatGivenText(text: string): string {
  return text.replaceAll(UNSAFE, '?')
}

/** Makes text from other programs safe to print, but keeps its line breaks. */
export function formatGivenLines(text: string): string {
  return text.split('\n').map(formatGivenText).join('\n')
}

/** Formats a value as JSON on one line, with escapes for unsafe characters that JSON does not escape. */
export function formatJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNSAFE, escapeUnits)
}

const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

function escapeUnits(text: string): string {
  return text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The flags that a suggested command needs to find the same data as the current command. */
interface Given {
  readonly config?: string | undefined
  readonly journal?: string | undefined
  readonly dir?: string | undefined
}

const inheritedBy: Readonly<Record<string, readonly (keyof Given)[]>> = {
  journal: ['config', 'journal'],
  rollout: ['config', 'journal'],
  compare: ['dir'],
  doctor: ['config'],
}

export const RUNS = './data/compare'

/**
 * Completes the `markbridge` commands in a text so that they can be pasted: with the way this program was started, and with the flags in
 * `given`.
 */
export function formatHints(text: string, given: Given): string {
  return text.replaceAll(
    /\bmarkbridge ((journal|rollout|compare) [a-z]+|(doctor|init|check|record|serve)\b)/g,
    (_, command: string, group?: string) => {
      const flags = (inheritedBy[group ?? command] ?? []).flatMap((name) => flagOf(name, given[name]))
      return [ownCommand(), command, ...flags].join(' ')
    },
  )
}

function flagOf(name: keyof Given, value: string | undefined): readonly string[] {
  if (value === undefined || value === RUNS || value === foundConfig()) return []
  // An address of PostgreSQL may contain a password.
  const isShown = name !== 'journal' || value.startsWith('sqlite:')
  return [`--${name}`, isShown ? quote(value) : '<url>']
}

/** Returns the command that started this program, as it can be typed into a shell. */
export function ownCommand(): string {
  const [, program = ''] = process.argv
  // A checkout has its own Node.js, which npm finds but the shell may not.
  if (/^(?:start|markbridge)$/.test(readEnvironment().npmScript ?? '')) return 'npm run -s markbridge --'
  if (/[\\/]node_modules[\\/]\.bin[\\/]/.test(program)) return 'npx markbridge'
  return /[\\/]main\.js$/.test(program) ? `node ${quote(relative('', program))}` : 'markbridge'
}

const quote = (text: string): string =>
  /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
