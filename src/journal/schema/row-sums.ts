import { crc32 } from 'node:zlib'

/**
 * Checksums of the rows whose columns change. Each is a sum over the columns, every one with a factor of its own: a statement that
 * changes some columns adds what they change, so that it never hides what was damaged before. Null: a row of a version that kept
 * no checksums.
 */

/** Keeps products within 64 bits. Odd, so that no flipped bit is lost in the remainder. */
const MODULUS = 2_147_483_647

/** Stands for null: nothing that `again` ever is. */
const NEVER = -2

const recordFactors = {
  batch: 3,
  position: 5,
  state: 7,
  live: 11,
  again: 13,
  attempts: 17,
  superseded: 19,
  dead_letter: 23,
} as const

const batchFactors = { owner: 3, open: 5, live: 7, answered: 11, retired: 13, side: 17 } as const

type Expressions<Factors> = Partial<Record<keyof Factors, string>>

/** Columns that may hold more than 32 bits. */
const wide: ReadonlySet<string> = new Set(['batch', 'again', 'owner'])

/** A value as it counts; SQL of both databases. */
function counted(column: string, expression: string): string {
  const value = column === 'again' ? `coalesce(${expression}, ${NEVER})` : `(${expression})`
  return wide.has(column) ? `${value} % ${MODULUS}` : value
}

/** Known parts are computed here: the database would compute them for each row. */
function term(factor: number, column: string, expression: string): number | string {
  const known = expression === 'null' ? NEVER : Number(expression)
  if (Number.isSafeInteger(known)) return factor * (known % MODULUS)
  return `cast(${factor} as bigint) * (${counted(column, expression)})`
}

function total(terms: readonly (number | string)[]): string {
  let known = 0
  const unknown: string[] = []
  for (const one of terms) {
    if (typeof one === 'number') known += one
    else unknown.push(one)
  }
  return [...unknown, `(${known})`].join(' + ')
}

function change(
  factors: Readonly<Record<string, number>>,
  alias: string,
  to: Expressions<Record<string, number>>,
  from: Expressions<Record<string, number>> = {},
): string {
  const terms = Object.entries(to).flatMap(([column, expression]) => {
    const factor = factors[column] ?? 0
    return [term(factor, column, expression ?? ''), term(-factor, column, from[column] ?? alias + column)]
  })
  return `${alias}sum + ${total(terms)}`
}

/** The sum of a record that is inserted with these values, as SQL. */
export function sumOfRecord(values: Readonly<Record<keyof typeof recordFactors, string>>): string {
  return total(
    Object.entries(recordFactors).map(([column, factor]) =>
      term(factor, column, values[column as keyof typeof values]),
    ),
  )
}

/** What a statement sets `sum` to that sets these columns of a record. `alias` ends with its point; `from`: what it looks for. */
export const changeOfRecord = (
  to: Expressions<typeof recordFactors>,
  alias = '',
  from: Expressions<typeof recordFactors> = {},
): string => change(recordFactors, alias, to, from)

/** The new `sum` in a statement that sets these columns of a batch. */
export const changeOfBatch = (to: Expressions<typeof batchFactors>, alias = ''): string =>
  change(batchFactors, alias, to)

/** 1 for a record that is as it was written, else 0; SQL. */
export function intactRecord(alias = ''): string {
  const columns = Object.fromEntries(Object.keys(recordFactors).map((column) => [column, alias + column]))
  const sum = sumOfRecord(columns as Record<keyof typeof recordFactors, string>)
  return `case when ${alias}sum is null or (${alias}sum = ${sum} and ${alias}key_copy = ${alias}key) then 1 else 0 end`
}

/** True while an instance of a version without checksums is served, which changes rows and not their sums; SQL. */
export const OLDER_VERSION = 'exists (select 1 from journal_instances where lease_ms is null)'

/** Begins of statements that take the sums of a batch away; its number, or what is compared with it, follows. */
export const DROP_SUMS = [
  'update journal_records set sum = null where batch',
  'update journal_batches set sum = null where id',
] as const

/** The columns that the checksum of a batch is made of. */
export interface SummedBatch {
  readonly partner: string
  readonly owner_id: string
  readonly ids: Uint8Array | null
  readonly content: Uint8Array
  readonly received_ms: number
  readonly owner: number
  readonly open: number
  readonly live: number
  readonly answered: number
  readonly retired: number
  readonly side: number
}

export const summedBatchColumns = [
  'partner',
  'owner_id',
  'ids',
  'content',
  'received_ms',
  'owner',
  'open',
  'live',
  'answered',
  'retired',
  'side',
] as const

/** The columns of a batch that is inserted, besides its number. */
export const insertedBatchColumns = [...summedBatchColumns, 'sum', 'newcomer', 'retires', 'bytes'] as const

/** The checksum of a batch: what never changes counts with its CRC. */
export function sumOfBatch(row: SummedBatch): number {
  const { partner, owner_id: ownerId, ids, content, received_ms: receivedMs } = row
  const named = crc32(`${partner}\n${ownerId}\n${receivedMs}\n${ids === null ? 'none' : ids.length}`)
  let sum = crc32(content, ids === null ? named : crc32(ids, named))
  for (const [column, factor] of Object.entries(batchFactors)) {
    sum += factor * (row[column as keyof typeof batchFactors] % MODULUS)
  }
  return sum
}

/** True for a batch that is as it was written. */
export function isIntactBatch(row: SummedBatch & { readonly sum: number | null }): boolean {
  if (row.sum === null) return true
  // A column of SQLite may hold another type than its own.
  const isBytes = (value: unknown): boolean => value instanceof Uint8Array
  if (!isBytes(row.content) || (row.ids !== null && !isBytes(row.ids))) return false
  return row.sum === sumOfBatch(row)
}
