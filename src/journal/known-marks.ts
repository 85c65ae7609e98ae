import { type Kysely, sql } from 'kysely'

import { decodeMark, type HashKeys, hashMarkId } from './seal.ts'
import type { KnownMarks, RecordRef } from './journal.ts'
import { stateCodes } from './lifecycle.ts'
import type { JournalTables } from './schema.ts'

interface Question extends RecordRef {
  readonly sinceMs: number | undefined
}

/**
 * How far back the journal searches for marks. An older mark is recognised by its `RecordedOn` alone, because time zones shift that time by
 * less than this limit. A longer search would need an index of all keys, which would slow down every write.
 */
const LOOK_BACK_MS = 30 * 3_600_000
/** Maximum number of keys in one statement, because databases limit the number of parameters. */
const KEYS_PER_STATEMENT = 500
/** Maximum number of batches that one statement searches. With thirty records in each batch, SQLite needs ten milliseconds for them. */
const BATCHES_PER_STATEMENT = 1_000
const { confirmed, unknown } = stateCodes
const states = (['open', 'confirmed', 'unknown', 'parked'] as const).map((state) =>
  sql.lit(stateCodes[state]),
)

/**
 * Creates `Journal.knownMarks`. Each read scans all batches received since 30 hours before the oldest record in question. Questions that
 * wait at the same time therefore share the next read.
 */
export function createKnownMarks(
  db: Kysely<JournalTables>,
  hashKeys: HashKeys,
): (record: RecordRef, sinceMs?: number) => Promise<KnownMarks> {
  let waiting: Question[] = []
  let next: Promise<readonly KnownMarks[]> | undefined
  let last: Promise<unknown> = Promise.resolve()
  const readWaiting = async (): Promise<readonly KnownMarks[]> => {
    await last
    const questions = waiting
    waiting = []
    next = undefined
    const answers = readKnownMarks(db, hashKeys, questions)
    last = answers.catch(() => undefined)
    return answers
  }
  return async ({ batch, position }, sinceMs) => {
    const index = waiting.push({ batch, position, sinceMs }) - 1
    next ??= readWaiting()
    return (await next)[index] ?? nothing
  }
}

async function readKnownMarks(
  db: Kysely<JournalTables>,
  hashKeys: HashKeys,
  questions: readonly Question[],
): Promise<readonly KnownMarks[]> {
  const known: KnownMarks[] = []
  for (let from = 0; from < questions.length; from += KEYS_PER_STATEMENT)
    known.push(...(await readSome(db, hashKeys, questions.slice(from, from + KEYS_PER_STATEMENT))))
  return known
}

async function readSome(
  db: Kysely<JournalTables>,
  hashKeys: HashKeys,
  questions: readonly Question[],
): Promise<readonly KnownMarks[]> {
  const places = questions.map(
    ({ batch, position }) => sql`(cast(${batch} as bigint), cast(${position} as integer))`,
  )
  const { rows: own } = await sql<RecordRef & { key: string; receivedMs: number }>`
    select record.batch, record.position, record.key, batch.received_ms as "receivedMs"
    from journal_records record join journal_batches batch on batch.id = record.batch
    where (record.batch, record.position) in (values ${sql.join(places)})`.execute(db)
  if (own.length === 0) return questions.map(() => nothing)
  const keyOf = new Map(own.map((row) => [`${row.batch}/${row.position}`, row.key]))
  const earliestMs = Math.min(...own.map((row) => row.receivedMs)) - LOOK_BACK_MS
  const rows = await readKeys(db, [...new Set(keyOf.values())], earliestMs)
  const byKey = Map.groupBy(rows, ({ key }) => key)
  const histories = new Map([...byKey].map(([key, records]) => [key, toHistory(records)]))
  return questions.map((question) => {
    const history = histories.get(keyOf.get(`${question.batch}/${question.position}`) ?? '')
    return history === undefined ? nothing : askHistory(history, question, hashKeys)
  })
}

/** Returns the records of the keys, oldest first. Uses several statements, so that writes continue in between. */
async function readKeys(
  db: Kysely<JournalTables>,
  keys: readonly string[],
  sinceMs: number,
): Promise<readonly KeyRecord[]> {
  const { rows: range } = await sql<{ first: number | null; last: number | null }>`select max(id) as last,
    (select id from journal_batches where received_ms < ${sinceMs} order by id desc limit 1) as first
    from journal_batches`.execute(db)
  const { first = 0, last = 0 } = range[0] ?? {}
  const records: KeyRecord[] = []
  for (let from = first ?? 0; from < (last ?? 0); from += BATCHES_PER_STATEMENT) {
    const { rows } = await sql<KeyRecord>`
      select record.batch, record.position, record.key, record.state, record.mark, record.superseded, batch.content, batch.received_ms as "receivedMs"
      from journal_records record join journal_batches batch on batch.id = record.batch
      where record.batch > ${from} and record.batch <= ${from + BATCHES_PER_STATEMENT}
        and record.key in (${sql.join(keys)}) and record.state in (${sql.join(states)})
      order by record.batch, record.position`.execute(db)
    for (const row of rows) records.push(row)
  }
  return records
}

interface KeyRecord extends RecordRef {
  readonly key: string
  readonly state: number
  readonly mark: string | null
  readonly superseded: number
  /** The digest `NewBatch.content` in hexadecimal, which is equal for copies of one batch. */
  readonly content: string
  readonly receivedMs: number
}

type Newer = KnownMarks['newer']

/** The records of one key, oldest first. `after` and `since` store facts that many questions need, so that a long history is read only once. */
interface History {
  readonly records: readonly KeyRecord[]
  /** `after[i]` is `confirmed` if one of the records from `i` on was applied, and `open` if one of them may be applied. */
  readonly after: readonly Newer[]
  readonly since: Map<string, Newer>
}

function toHistory(records: readonly KeyRecord[]): History {
  const after = Array<Newer>(records.length + 1).fill('none')
  for (let at = records.length - 1; at >= 0; at -= 1)
    after[at] = records[at]?.state === confirmed || after[at + 1] === 'confirmed' ? 'confirmed' : 'open'
  return { records, after, since: new Map() }
}

/**
 * Returns whether records that were received from `sinceMs` up to a batch were or may be applied. Records of earlier copies of the batch,
 * which are the same records, and superseded records count only if they were confirmed.
 */
function newerSince({ records, since }: History, batch: number, sinceMs: number): Newer {
  const key = `${batch} ${sinceMs}`
  const known = since.get(key)
  if (known !== undefined) return known
  const own = firstIndex(records, (one) => one.batch >= batch)
  const content = records[own]?.batch === batch ? records[own].content : undefined
  const first = firstIndex(records, (one) => one.receivedMs >= sinceMs)
  const later = records.slice(first, own)
  const isNewer = (one: KeyRecord): boolean => one.superseded === 0 && one.content !== content
  const isConfirmed = later.some(({ state }) => state === confirmed)
  const newer = isConfirmed ? 'confirmed' : later.some(isNewer) ? 'open' : 'none'
  since.set(key, newer)
  return newer
}

/**
 * Maximum number of older records that are examined for one question: this many in older batches, and as many in the same batch. The mark
 * that the service currently shows is among the latest.
 */
const OLDER_MARKS = 64

function askHistory(
  history: History,
  { batch, position, sinceMs = Infinity }: Question,
  hashKeys: HashKeys,
): KnownMarks {
  const { records, after } = history
  const firstOf = (condition: (record: KeyRecord) => boolean): number => firstIndex(records, condition)
  const next = firstOf((one) => one.batch > batch || (one.batch === batch && one.position > position))
  const own = firstOf((one) => one.batch >= batch)
  const before = Math.min(
    firstOf((one) => one.receivedMs >= sinceMs),
    own,
  )
  const older = [
    ...records.slice(Math.max(0, before - OLDER_MARKS), before),
    ...records.slice(Math.max(own, next - OLDER_MARKS), next),
  ]
  const others = older.filter((one) => one.batch !== batch || one.position !== position)
  const marks = others.flatMap(({ state, mark }) =>
    state === confirmed && mark !== null ? [decodeMark(mark)] : [],
  )
  const last = others.findLastIndex(({ state }) => state === confirmed) + 1
  const isLost = ({ state }: KeyRecord): boolean => state === unknown
  const newer = [newerSince(history, batch, sinceMs), after[next]]
  return {
    confirmedAt: (externalId) => {
      const idHash = hashMarkId(hashKeys, externalId)
      return marks.filter((mark) => mark.idHash === idHash).map(({ recordedMs }) => recordedMs)
    },
    lost: others.slice(last).filter(isLost),
    lostBefore: others.slice(0, last).filter(isLost),
    newer: (['confirmed', 'open'] as const).find((one) => newer.includes(one)) ?? 'none',
  }
}

/** Returns the index of the first item that meets a condition. If an item meets the condition, all later items must meet it too. */
function firstIndex<Item>(items: readonly Item[], condition: (item: Item) => boolean): number {
  let [from, to] = [0, items.length]
  while (from < to) {
    const middle = (from + to) >> 1
    const item = items[middle]
    if (item !== undefined && condition(item)) to = middle
    else from = middle + 1
  }
  return from
}

const nothing: KnownMarks = { confirmedAt: () => [], lost: [], lostBefore: [], newer: 'none' }
