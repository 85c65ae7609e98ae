import { relative } from 'node:path'

import type { Command } from 'commander'

import { foundConfig, readEnvironment } from '../config/environment.ts'

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
    print(this, answer)
    exitWith(answer.status ?? 0)
  }
}

/** Prints an answer as the flags of its command ask for it. */
export function print(command: Command, { document, text, isRefusal = false }: Answer): void {
  const flags = command.opts<{ json?: boolean; config?: string; journal?: string; dir?: string }>()
  if (flags.json === true) console.log(formatJson(document))
  else if (isRefusal) console.error(`markbridge: ${formatHints(text(), flags)}`)
  else console.log(formatHints(text(), flags))
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

/** A document for programs, on one line; JSON itself leaves some of these characters as they are. */
export function formatJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNSAFE, escapeUnits)
}

const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

function escapeUnits(text: string): string {
  return text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Flags that a command in a hint needs in order to find what the command before it has found. */
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

/** The folder of runs where none is named. */
export const RUNS = './data/compare'

/** Makes the commands that a text names ready to be pasted: started as this one was, with its configuration, journal and folder. */
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
  // Any other address of a journal may hold a password.
  const isShown = name !== 'journal' || value.startsWith('sqlite:')
  return [`--${name}`, isShown ? quote(value) : '<url>']
}

/** How this program was started, as a shell takes it. */
export function ownCommand(): string {
  const [, program = ''] = process.argv
  // Its Node.js is that of the checkout, which the shell may not find.
  if (/^(?:start|markbridge)$/.test(readEnvironment().npmScript ?? '')) return 'npm run -s markbridge --'
  if (/[\\/]node_modules[\\/]\.bin[\\/]/.test(program)) return 'npx markbridge'
  return /[\\/]main\.js$/.test(program) ? `node ${quote(relative('', program))}` : 'markbridge'
}

const quote = (text: string): string =>
  /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
