import { setImmediate as nextTurn } from 'node:timers/promises'

import { type Kysely, sql } from 'kysely'

import type { StoredBatch, StoredRecord } from './journal.ts'
import { lackingKey } from './keys.ts'
import { recordStates, toRetry } from './lifecycle.ts'
import { type Sealed, type SealedFor, unpackAnswers, type Unsealing, unseal } from './seal.ts'
import type { JournalTables } from './schema.ts'

const ROWS_PER_QUERY = 2_000
const BLOBS_PER_QUERY = 64
const PIECE_BYTES = 1_048_576
/** Maximum bytes of stored replies, and number of records, that are unpacked in one turn of the event loop. */
const UNPACKED_BYTES = 1_048_576
const UNPACKED_RECORDS = 4_000

/** Reads one batch in a consistent state. A large batch is read in parts, and other work runs in between. */
export async function readBatch(
  db: Kysely<JournalTables>,
  batch: number,
  how: Unsealing,
): Promise<StoredBatch | undefined> {
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  const rows = await reading.execute((at) => readRows(at, batch))
  if (rows === undefined) return undefined
  const { partner, owner, onV2, receivedMs, payload, credentials } = rows
  const unsealBlob = async (blob: Sealed, kind: SealedFor['kind']): Promise<Uint8Array> => {
    const { keyId } = blob
    if (keyId !== null && !how.keys.some(({ id }) => id === keyId))
      throw await lackingKey(db, keyId, `the ${kind} of batch ${batch}`)
    return unseal(blob, how, { kind, batch, owner })
  }
  const answers = await unpackAll(rows.packs, (pack) => unsealBlob(pack, 'answers'))
  const records: StoredRecord[] = []
  for (const record of rows.records) {
    records.push(toStored(record, answers.get(record.position)))
    if (records.length % UNPACKED_RECORDS === 0) await nextTurn()
  }
  const secret = credentials && (await unsealBlob(credentials, 'credentials'))
  return {
    batch,
    partner,
    owner,
    side: onV2 === 1 ? 'v2' : undefined,
    receivedMs,
    payload: payload && (await unsealBlob(payload, 'payload')),
    credentials: secret && Buffer.from(secret).toString(),
    records,
  }
}

interface RecordRow {
  readonly position: number
  readonly state: number
  readonly retry: number | null
  readonly reason: string | null
  readonly superseded: number
  readonly attempts: number
}

async function readRows(at: Kysely<JournalTables>, batch: number) {
  const { rows } = await sql<{ partner: string; owner: string; onV2: number; receivedMs: number }>`
    select partner, owner, on_v2 as "onV2", received_ms as "receivedMs" from journal_batches
    where id = ${batch}`.execute(at)
  return (
    rows[0] && {
      ...rows[0],
      payload: await readBlob(at, 'journal_payloads', batch),
      credentials: await readBlob(at, 'journal_credentials', batch),
      records: await readPaged(ROWS_PER_QUERY, readRecords(at, batch), ({ position }) => position),
      packs: await readPaged(BLOBS_PER_QUERY, readPacks(at, batch), ({ id }) => id),
    }
  )
}

/** Reads a large blob in pieces, because the PostgreSQL driver decodes a value without returning to the event loop. */
async function readBlob(
  at: Kysely<JournalTables>,
  table: 'journal_payloads' | 'journal_credentials',
  batch: number,
): Promise<Sealed | undefined> {
  const readPiece = async (from: number): Promise<(Sealed & { size: number }) | undefined> => {
    const { rows } = await sql<Sealed & { size: number }>`select key_id as "keyId", length(body) as size,
      substr(body, ${sql.lit(from)}, ${sql.lit(PIECE_BYTES)}) as body
      from ${sql.table(table)} where batch = ${batch}`.execute(at)
    return rows[0]
  }
  const first = await readPiece(1)
  if (first === undefined || first.size <= PIECE_BYTES) return first
  const pieces = [first.body]
  for (let from = 1 + PIECE_BYTES; from <= first.size; from += PIECE_BYTES) {
    const next = await readPiece(from)
    if (next !== undefined) pieces.push(next.body)
  }
  return { keyId: first.keyId, body: Buffer.concat(pieces) }
}

const readRecords = (at: Kysely<JournalTables>, batch: number) => async (last: number) => {
  const { rows } = await sql<RecordRow>`
    select position, state, retry, reason, superseded, attempts from journal_records
    where batch = ${batch} and position > ${last} order by position limit ${ROWS_PER_QUERY}`.execute(at)
  return rows
}

const readPacks = (at: Kysely<JournalTables>, batch: number) => async (last: number) => {
  const { rows } = await sql<Sealed & { id: number }>`select id, key_id as "keyId", body from journal_answers
    where batch = ${batch} and id > ${last} order by id limit ${BLOBS_PER_QUERY}`.execute(at)
  return rows
}

/** Returns all rows, reading `size` rows per query. `read` returns the rows after the given number. */
async function readPaged<Row>(
  size: number,
  read: (last: number) => Promise<readonly Row[]>,
  numberOf: (row: Row) => number,
): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (let last = -1; ;) {
    const page = await read(last)
    for (const row of page) rows.push(row)
    const end = page.at(-1)
    if (end === undefined || page.length < size) return rows
    last = numberOf(end)
  }
}

async function unpackAll(
  packs: readonly Sealed[],
  unsealBlob: (pack: Sealed) => Promise<Uint8Array>,
): Promise<ReadonlyMap<number, string>> {
  const answers = new Map<number, string>()
  let bytes = 0
  for (const pack of packs) {
    const body = await unsealBlob(pack)
    unpackAnswers(body, answers)
    bytes += body.length
    if (bytes < UNPACKED_BYTES) continue
    bytes = 0
    await nextTurn()
  }
  return answers
}

const toStored = (
  { position, state, retry, reason, superseded, attempts }: RecordRow,
  answer: string | undefined,
): StoredRecord => ({
  position,
  state: recordStates[state] ?? 'unknown',
  answer,
  reason: reason ?? undefined,
  retry: toRetry(retry),
  superseded: superseded === 1,
  attempts,
})
