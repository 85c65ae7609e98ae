import { setImmediate as nextTurn } from 'node:timers/promises'

import { type Kysely, sql } from 'kysely'

import type { StoredBatch, StoredRecord } from './journal.ts'
import { intactRecord, summedBatchColumns } from './schema/row-sums.ts'
import { toSide } from './side.ts'
import { recordStates, toRetry } from './lifecycle.ts'
import type { JournalTables } from './schema/tables.ts'
import { unpackAnswers } from './store/answer-pack.ts'
import { damagedRecord, expectIntactBatch } from './store/damage.ts'
import { type Sealed, type SealedFor, type Unsealing, unseal } from './store/seal.ts'

/** Rows that are read with one query. */
const ROWS_PER_QUERY = 2_000
const BLOBS_PER_QUERY = 64
/** Bytes of a blob that one query reads. */
const PIECE_BYTES = 1_048_576
/** Bytes of answers, and number of records, unpacked in one turn of the event loop. */
const UNPACKED_BYTES = 1_048_576
const UNPACKED_RECORDS = 4_000

/**
 * Reads one batch as it is at one moment; undefined: there is none of this number. A large one is read in parts, between which
 * others run.
 */
export async function readBatch(
  db: Kysely<JournalTables>,
  batch: number,
  how: Unsealing,
): Promise<StoredBatch | undefined> {
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  const rows = await reading.execute((at) => readRows(at, batch))
  if (rows === undefined) return undefined
  const { row, payload, credentials, records, packs } = rows
  const of = { batch, owner: row.owner_id }
  const answers = await unpackAll(packs, how, of)
  const stored: StoredRecord[] = []
  for (const record of records) {
    stored.push(toStored(record, answers.get(record.position)))
    if (stored.length % UNPACKED_RECORDS === 0) await nextTurn()
  }
  return {
    batch,
    partner: row.partner,
    owner: row.owner_id,
    side: toSide(row.side),
    receivedMs: row.received_ms,
    payload: payload === undefined ? undefined : await unseal(payload, how, 'payload', of),
    credentials:
      credentials === undefined
        ? undefined
        : Buffer.from(await unseal(credentials, how, 'credentials', of)).toString(),
    records: stored,
  }
}

type RecordRow = Awaited<ReturnType<typeof readRecords>>[number]

async function readRows(at: Kysely<JournalTables>, batch: number) {
  const row = await at
    .selectFrom('journal_batches')
    .select([...summedBatchColumns, 'sum'])
    .where('id', '=', batch)
    .executeTakeFirst()
  if (row === undefined) return undefined
  expectIntactBatch(batch, row)
  const payload = await readBlob(at, 'journal_payloads', batch)
  const credentials = await readBlob(at, 'journal_credentials', batch)
  const records = await readRecords(at, batch)
  if (records.some(({ intact }) => intact !== 1)) throw damagedRecord(batch)
  return { row, payload, credentials, records, packs: await readPacks(at, batch) }
}

const sealed = ['key_id as keyId', 'body'] as const

/** One blob of a batch; undefined: it has none. A large one is read in pieces: the driver of PostgreSQL decodes each at once. */
async function readBlob(
  at: Kysely<JournalTables>,
  table: 'journal_payloads' | 'journal_credentials',
  batch: number,
): Promise<Sealed | undefined> {
  const readPiece = (from: number) =>
    at
      .selectFrom(table)
      .select([
        'key_id as keyId',
        sql<number>`length(body)`.as('size'),
        sql<Uint8Array>`substr(body, ${sql.lit(from)}, ${sql.lit(PIECE_BYTES)})`.as('body'),
      ])
      .where('batch', '=', batch)
      .executeTakeFirst()
  const first = await readPiece(1)
  if (first === undefined || first.size <= PIECE_BYTES) return first
  const pieces = [first.body]
  for (let from = 1 + PIECE_BYTES; from <= first.size; from += PIECE_BYTES) {
    const next = await readPiece(from)
    if (next !== undefined) pieces.push(next.body)
  }
  return { keyId: first.keyId, body: Buffer.concat(pieces) }
}

/** The records of a batch in their order. */
function readRecords(at: Kysely<JournalTables>, batch: number) {
  return readPaged(
    ROWS_PER_QUERY,
    (last: number) =>
      at
        .selectFrom('journal_records')
        .select(['position', 'state', 'again', 'reason', 'superseded', 'attempts'])
        .select(sql.raw<number>(intactRecord()).as('intact'))
        .where('batch', '=', batch)
        .where('position', '>', last)
        .orderBy('position')
        .limit(ROWS_PER_QUERY)
        .execute(),
    ({ position }) => position,
  )
}

/** The packs of answers of a batch in their order. */
function readPacks(at: Kysely<JournalTables>, batch: number) {
  return readPaged(
    BLOBS_PER_QUERY,
    (last: number) =>
      at
        .selectFrom('journal_answers')
        .select(['id', ...sealed])
        .where('batch', '=', batch)
        .where('id', '>', last)
        .orderBy('id')
        .limit(BLOBS_PER_QUERY)
        .execute(),
    ({ id }) => id,
  )
}

/** All rows, `size` with each query: `read` gives those after the last one. */
async function readPaged<Row>(
  size: number,
  read: (last: number) => Promise<readonly Row[]>,
  placeOf: (row: Row) => number,
): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (let last = -1; ;) {
    const page = await read(last)
    for (const row of page) rows.push(row)
    const end = page.at(-1)
    if (end === undefined || page.length < size) return rows
    last = placeOf(end)
  }
}

/** The answers of all packs by position; later packs win. */
async function unpackAll(
  packs: readonly Sealed[],
  how: Unsealing,
  of: SealedFor,
): Promise<ReadonlyMap<number, string>> {
  const answers = new Map<number, string>()
  let bytes = 0
  for (const pack of packs) {
    const body = await unseal(pack, how, 'answers', of)
    unpackAnswers(body, answers)
    bytes += body.length
    if (bytes < UNPACKED_BYTES) continue
    bytes = 0
    await nextTurn()
  }
  return answers
}

function toStored(
  { position, state, again, reason, superseded, attempts }: RecordRow,
  answer: string | undefined,
): StoredRecord {
  return {
    position,
    state: recordStates[state] ?? 'unknown',
    answer,
    reason: reason ?? undefined,
    retry: toRetry(again),
    superseded: superseded === 1,
    attempts,
  }
}
