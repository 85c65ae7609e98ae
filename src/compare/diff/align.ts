import { contentKey } from './content-key.ts'
import { isMembers, type Members } from './values.ts'

/** Rows of one side with one key: one record, which occurs so many times. Almost always a single row. */
interface KeyedRecord {
  /** Of its first row. */
  readonly at: number
  readonly rows: readonly Members[]
}

/** One record of both sides, or of one side, with all its rows; `at` is its place among the rows of that side. */
export interface AlignedRecord {
  readonly v2: readonly Members[]
  readonly v3: readonly Members[]
  /** -1: the side does not have it. */
  readonly v2At: number
  readonly v3At: number
}

export interface Alignment {
  /** In the order of V2, then what only V3 has in its own order. */
  readonly records: readonly AlignedRecord[]
  /** Rows that no key names: no objects, or objects without an id. */
  readonly v2Unknown: readonly unknown[]
  readonly v3Unknown: readonly unknown[]
}

/** How rows are found again on the other side. */
export interface Keys {
  /** The key of a row: rows of one side with the same key are one record. Undefined: it has none. */
  readonly keyOf: (row: Members) => string | undefined
  /** Another key, for rows whose key the other side does not have; undefined: there is none. */
  readonly otherKeyOf?: (row: Members) => string | undefined
  /** Members in which two rows with the same other key differ at least. */
  readonly keyMembers: ReadonlySet<string>
}

/**
 * Sets rows of both sides side by side by their keys, wherever they stand. What a key does not find is looked up by the other key, rows
 * of equal content first. The result is the same for any order of the rows, but for the order of its records.
 */
export function alignRows(v2: readonly unknown[], v3: readonly unknown[], keys: Keys): Alignment {
  const [v2Unknown, v3Unknown]: [unknown[], unknown[]] = [[], []]
  const v2Records = collect(v2, keys, v2Unknown)
  const v3Records = collect(v3, keys, v3Unknown)
  const records: AlignedRecord[] = []
  const v2Rest: KeyedRecord[] = []
  for (const [key, record] of v2Records) {
    const other = v3Records.get(key)
    if (other === undefined) v2Rest.push(record)
    else records.push(toAligned(record, other))
  }
  if (records.length < v2Records.size || records.length < v3Records.size) {
    const v3Rest = [...v3Records].filter(([key]) => !v2Records.has(key)).map(([, record]) => record)
    records.push(...alignRest(v2Rest, v3Rest, keys))
    records.sort(byPlace)
  }
  return { records, v2Unknown, v3Unknown }
}

function collect(rows: readonly unknown[], { keyOf }: Keys, unknown: unknown[]): Map<string, KeyedRecord> {
  const records = new Map<string, KeyedRecord>()
  for (let at = 0; at < rows.length; at += 1) {
    const row = rows[at]
    const key = isMembers(row) ? keyOf(row) : undefined
    if (key === undefined || !isMembers(row)) {
      unknown.push(row)
      continue
    }
    const first = records.get(key)
    // Adds to the record in place: many rows with one key would else be copied as often.
    if (first === undefined) records.set(key, { at, rows: [row] })
    else (first.rows as Members[]).push(row)
  }
  return records
}

const nothing: KeyedRecord = { at: -1, rows: [] }

const toAligned = (v2: KeyedRecord, v3: KeyedRecord): AlignedRecord => ({
  v2: v2.rows,
  v3: v3.rows,
  v2At: v2.at,
  v3At: v3.at,
})

function byPlace(one: AlignedRecord, other: AlignedRecord): number {
  if (one.v2At === -1 || other.v2At === -1)
    return one.v2At === other.v2At ? one.v3At - other.v3At : other.v2At - one.v2At
  return one.v2At - other.v2At
}

/** Pairs by the other key, then gives what is left as records of one side. */
function alignRest(
  v2: readonly KeyedRecord[],
  v3: readonly KeyedRecord[],
  keys: Keys,
): readonly AlignedRecord[] {
  const v2Groups = groupByOtherKey(v2, keys)
  const v3Groups = groupByOtherKey(v3, keys)
  const records: AlignedRecord[] = []
  const paired = new Set<KeyedRecord>()
  for (const [key, group] of v2Groups) {
    for (const [one, other] of pairByContent(group, v3Groups.get(key) ?? [], keys.keyMembers)) {
      records.push(toAligned(one, other))
      paired.add(one).add(other)
    }
  }
  for (const record of v2) if (!paired.has(record)) records.push(toAligned(record, nothing))
  for (const record of v3) if (!paired.has(record)) records.push(toAligned(nothing, record))
  return records
}

function groupByOtherKey(
  records: readonly KeyedRecord[],
  { otherKeyOf }: Keys,
): ReadonlyMap<string, readonly KeyedRecord[]> {
  const groups = new Map<string, KeyedRecord[]>()
  for (const record of records) {
    // The least one where its rows disagree: not that of the row which happens to be the first.
    const [key] = record.rows.flatMap((row) => otherKeyOf?.(row) ?? []).sort()
    if (key === undefined) continue
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [record])
    else group.push(record)
  }
  return groups
}

function pairByContent(
  v2: readonly KeyedRecord[],
  v3: readonly KeyedRecord[],
  without: ReadonlySet<string>,
): readonly (readonly [KeyedRecord, KeyedRecord])[] {
  const [one, other] = [v2[0], v3[0]]
  if (one === undefined || other === undefined) return []
  if (v2.length === 1 && v3.length === 1) return [[one, other]]
  return pairEqualFirst(v2, v3, ({ rows }) => rows, without)
}

/** Pairs items of equal content, then what is left in the order of its content; as many pairs as the shorter list has items. */
export function pairEqualFirst<Item>(
  v2: readonly Item[],
  v3: readonly Item[],
  rowsOf: (item: Item) => readonly Members[],
  without: ReadonlySet<string> = new Set(),
): readonly (readonly [v2: Item, v3: Item])[] {
  const keyed = (items: readonly Item[]): readonly Keyed<Item>[] =>
    items.map((item) => toKeyed(item, rowsOf(item), without)).sort(byContent)
  const pairs: (readonly [Item, Item])[] = []
  const waiting = Map.groupBy(keyed(v3).toReversed(), ({ content }) => content)
  const rest: Item[] = []
  for (const { item, content } of keyed(v2)) {
    const equal = waiting.get(content)?.pop()
    if (equal === undefined) rest.push(item)
    else pairs.push([item, equal.item])
  }
  const others = [...waiting.values()].flat().sort(byContent)
  for (const [at, item] of rest.entries()) {
    const other = others[at]
    if (other === undefined) break
    pairs.push([item, other.item])
  }
  return pairs
}

interface Keyed<Item> {
  readonly item: Item
  readonly content: string
  /** Orders items of one content that differ in form. */
  readonly exact: string
}

function toKeyed<Item>(item: Item, rows: readonly Members[], without: ReadonlySet<string>): Keyed<Item> {
  const [content = ''] = rows.map((row) => contentKey(row, { without })).sort()
  const exact = rows.map((row) => contentKey(row, { exact: true })).sort()
  return { item, content, exact: exact.join() }
}

function byContent<Item>(one: Keyed<Item>, other: Keyed<Item>): number {
  if (one.content !== other.content) return one.content < other.content ? -1 : 1
  return one.exact < other.exact ? -1 : one.exact > other.exact ? 1 : 0
}
