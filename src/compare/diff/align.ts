import { contentKey } from './values.ts'

/** The rows of one side (V2 or V3) with the same key. `at` is the index of the first row in the answer, or -1 if there is no row. */
interface KeyedRows {
  readonly at: number
  readonly rows: readonly unknown[]
}

/** One record with the rows that V2 and V3 returned for it. A side that lacks the record has no rows. */
export interface AlignedRecord {
  readonly v2: KeyedRows
  readonly v3: KeyedRows
}

export interface Keys {
  /** Returns the key of a row, or `undefined` if the row has no key. Rows of one side with the same key count as one record. */
  readonly keyOf: (row: unknown) => string | undefined
  /** Returns a second key of a row, which is used if no row of the other side has the same first key. Default: no second key. */
  readonly otherKeyOf?: (row: unknown) => string | undefined
  /** The members that form the first key. When rows with the same second key are paired by content, these members are ignored. */
  readonly keyMembers?: ReadonlySet<string>
}

const nothing: KeyedRows = { at: -1, rows: [] }

/** Pairs the rows of V2 and V3 by their key, and the remaining rows by their second key. Pairs rows with equal content first. */
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

/** Pairs records by their second key. A record that remains unpaired is returned as a record of one side only. */
function alignRest(
  v2: readonly KeyedRows[],
  v3: readonly KeyedRows[],
  { otherKeyOf, keyMembers = new Set() }: Keys,
): readonly AlignedRecord[] {
  // Rows of one record may have different second keys. The smallest key is used, because it does not depend on the order of the rows.
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

/** Pairs the V2 rows of one record with its V3 rows, since a service may return a record several times. Equal rows are paired first. */
export function pairRows({ v2, v3 }: AlignedRecord): readonly (readonly [v2: unknown, v3: unknown])[] {
  if (v2.rows.length === 1 && v3.rows.length === 1) return [[v2.rows[0], v3.rows[0]]]
  const each = ({ rows }: KeyedRows): readonly KeyedRows[] => rows.map((row, at) => ({ at, rows: [row] }))
  return pairEqualFirst(each(v2), each(v3), new Set()).map((pair) => [pair.v2.rows[0], pair.v3.rows[0]])
}

/** Pairs records with equal content first, then the rest in the order of their content. Surplus records of one side remain unpaired. */
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
 * Returns the smallest set of records that must have moved to turn the order of V2 into the order of V3, so that one moved row counts as
 * one difference. All other records form a longest increasing subsequence of positions on V3. Runs in O(n log n).
 */
export function movedRecords(records: readonly AlignedRecord[]): ReadonlySet<AlignedRecord> {
  const pairs = records.filter(({ v2, v3 }) => v2.at !== -1 && v3.at !== -1)
  const placeOf = (at: number | undefined): number => pairs[at ?? -1]?.v3.at ?? -1
  // tails[n] is the index of the pair that ends an increasing subsequence of length n + 1 at the smallest position on V3.
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
