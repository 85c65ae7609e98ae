import { contentKey } from './values.ts'

/** The rows of one side with one key, almost always one; `at` is the place of the first, -1 where there is none. */
interface KeyedRows {
  readonly at: number
  readonly rows: readonly unknown[]
}

/** One record of both sides, or of one side, with all its rows. */
export interface AlignedRecord {
  readonly v2: KeyedRows
  readonly v3: KeyedRows
}

/** How rows are found again on the other side. */
export interface Keys {
  /** The key of a row: rows of one side with the same key are one record. Undefined: it has none. */
  readonly keyOf: (row: unknown) => string | undefined
  /** Another key, for rows whose key the other side does not have; default: there is none. */
  readonly otherKeyOf?: (row: unknown) => string | undefined
  /** Members in which two rows with the same other key differ at least. */
  readonly keyMembers?: ReadonlySet<string>
}

const nothing: KeyedRows = { at: -1, rows: [] }

/**
 * Sets rows of both sides side by side by their keys, wherever they stand. What a key does not find is looked up by the other key, rows
 * of equal content first. The result is the same for any order of the rows, but for the order of its records.
 */
export function alignRows(v2: readonly unknown[], v3: readonly unknown[], keys: Keys) {
  const [v2Unknown, v3Unknown]: [unknown[], unknown[]] = [[], []]
  const v2Records = collect(v2, keys, v2Unknown)
  const v3Records = collect(v3, keys, v3Unknown)
  const records: AlignedRecord[] = []
  for (const [key, record] of v2Records) {
    const other = v3Records.get(key)
    if (other === undefined) continue
    records.push({ v2: record, v3: other })
    v2Records.delete(key)
    v3Records.delete(key)
  }
  if (v2Records.size + v3Records.size > 0) {
    records.push(...alignRest([...v2Records.values()], [...v3Records.values()], keys))
    records.sort(byPlace)
  }
  return { records, v2Unknown, v3Unknown }
}

function collect(rows: readonly unknown[], { keyOf }: Keys, unknown: unknown[]): Map<string, KeyedRows> {
  const records = new Map<string, { readonly at: number; readonly rows: unknown[] }>()
  for (const [at, row] of rows.entries()) {
    const key = keyOf(row)
    if (key === undefined) {
      unknown.push(row)
      continue
    }
    const first = records.get(key)
    if (first === undefined) records.set(key, { at, rows: [row] })
    else first.rows.push(row)
  }
  return records
}

function byPlace(one: AlignedRecord, other: AlignedRecord): number {
  if (one.v2.at === -1 || other.v2.at === -1)
    return one.v2.at === other.v2.at ? one.v3.at - other.v3.at : other.v2.at - one.v2.at
  return one.v2.at - other.v2.at
}

/** Pairs by the other key, then gives what is left as records of one side. */
function alignRest(
  v2: readonly KeyedRows[],
  v3: readonly KeyedRows[],
  { otherKeyOf, keyMembers = new Set() }: Keys,
): readonly AlignedRecord[] {
  // The least one where its rows disagree: not that of the row which happens to be the first.
  const groupsOf = (records: readonly KeyedRows[]): ReadonlyMap<string | undefined, readonly KeyedRows[]> =>
    Map.groupBy(records, ({ rows }) => rows.flatMap((row) => otherKeyOf?.(row) ?? []).sort()[0])
  const v3Groups = groupsOf(v3)
  const records: AlignedRecord[] = []
  const paired = new Set<KeyedRows>()
  for (const [key, group] of groupsOf(v2)) {
    if (key === undefined) continue
    for (const pair of pairEqualFirst(group, v3Groups.get(key) ?? [], keyMembers)) {
      records.push(pair)
      paired.add(pair.v2).add(pair.v3)
    }
  }
  for (const record of v2) if (!paired.has(record)) records.push({ v2: record, v3: nothing })
  for (const record of v3) if (!paired.has(record)) records.push({ v2: nothing, v3: record })
  return records
}

/** The pairs of rows of one record that a service gives several times: equal rows belong together. */
export function pairRows({ v2, v3 }: AlignedRecord): readonly (readonly [v2: unknown, v3: unknown])[] {
  if (v2.rows.length === 1 && v3.rows.length === 1) return [[v2.rows[0], v3.rows[0]]]
  const each = ({ rows }: KeyedRows): readonly KeyedRows[] => rows.map((row, at) => ({ at, rows: [row] }))
  return pairEqualFirst(each(v2), each(v3), new Set()).map((pair) => [pair.v2.rows[0], pair.v3.rows[0]])
}

/** Pairs records of equal content, then what is left in the order of its content; as many pairs as the shorter list has records. */
function pairEqualFirst(
  v2: readonly KeyedRows[],
  v3: readonly KeyedRows[],
  without: ReadonlySet<string>,
): readonly AlignedRecord[] {
  const sorted = (records: readonly KeyedRows[]): readonly SortedRows[] =>
    records.map((record) => toSorted(record, without)).sort(byContent)
  const waiting = Map.groupBy(sorted(v3).toReversed(), ({ content }) => content)
  const pairs: AlignedRecord[] = []
  const rest: KeyedRows[] = []
  for (const { record, content } of sorted(v2)) {
    const equal = waiting.get(content)?.pop()
    if (equal === undefined) rest.push(record)
    else pairs.push({ v2: record, v3: equal.record })
  }
  const others = [...waiting.values()].flat().sort(byContent)
  for (const [at, record] of rest.entries()) {
    const other = others[at]
    if (other !== undefined) pairs.push({ v2: record, v3: other.record })
  }
  return pairs
}

interface SortedRows {
  readonly record: KeyedRows
  readonly content: string
  /** Orders records of one content that differ in form. */
  readonly exact: string
}

function toSorted(record: KeyedRows, without: ReadonlySet<string>): SortedRows {
  const [content = ''] = record.rows.map((row) => contentKey(row, { without })).sort()
  const exact = record.rows.map((row) => contentKey(row, { exact: true })).sort()
  return { record, content, exact: exact.join() }
}

function byContent(one: SortedRows, other: SortedRows): number {
  if (one.content !== other.content) return one.content < other.content ? -1 : 1
  return one.exact < other.exact ? -1 : one.exact > other.exact ? 1 : 0
}

/**
 * The fewest records that explain another order: one row that moved is one record, not all behind it. They are those outside of a longest
 * sequence in which the places on V3 increase. O(n log n).
 */
export function movedRecords(records: readonly AlignedRecord[]): ReadonlySet<AlignedRecord> {
  const pairs = records.filter(({ v2, v3 }) => v2.at !== -1 && v3.at !== -1)
  const placeOf = (at: number | undefined): number => pairs[at ?? -1]?.v3.at ?? -1
  // tails[n]: where the smallest end of an increasing sequence of n + 1 places stands.
  const tails: number[] = []
  const previous: number[] = []
  for (const [at, { v3 }] of pairs.entries()) {
    let [low, high] = [0, tails.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (placeOf(tails[middle]) < v3.at) low = middle + 1
      else high = middle
    }
    previous.push(tails[low - 1] ?? -1)
    tails[low] = at
  }
  const moved = new Set(pairs)
  for (let at = tails.at(-1) ?? -1; at !== -1; at = previous[at] ?? -1) {
    const kept = pairs[at]
    if (kept !== undefined) moved.delete(kept)
  }
  return moved
}
