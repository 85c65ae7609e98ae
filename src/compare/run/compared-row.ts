import type { RecordDiff, RowOrder } from '../diff/index.ts'
import type { MarkKey } from './write-filter.ts'

/** Sets the rows of both sides against each other: one result for each record. `free`: the rows are some of several answers. */
export type CompareRows = (
  v2: readonly unknown[],
  v3: readonly unknown[],
  order: RowOrder,
) => readonly RecordDiff[]

const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Learner and session of a mark, as V2 has them, else V3; undefined where they cannot be asked for. */
export function keyOf({ v2, v3 }: Pick<RecordDiff, 'v2' | 'v3'>): MarkKey | undefined {
  return keyOfRow(v2) ?? keyOfRow(v3)
}

/** Learner and session of the row of one side. */
export function keyOfRow(row: unknown): MarkKey | undefined {
  const [learner, event] = [textOf(row, 'Learner'), textOf(row, 'AttendableEvent')]
  if (learner === undefined || event === undefined || !GUID.test(learner) || !GUID.test(event))
    return undefined
  return { learner, event }
}

/** The key as a text that is equal for equal keys. */
export function nameOf({ learner, event }: MarkKey): string {
  return `${learner} ${event}`.toLowerCase()
}

/** A member that is a text. */
export function textOf(row: unknown, name: string): string | undefined {
  const value =
    typeof row === 'object' && row !== null ? (row as Readonly<Record<string, unknown>>)[name] : undefined
  return typeof value === 'string' ? value : undefined
}
