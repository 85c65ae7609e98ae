import { createHmac } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { sql } from 'kysely'

import { AdapterError } from '../../errors.ts'
import {
  createKeyHash,
  hashMarkId,
  openSecret,
  readSalt,
  unpackAnswers,
  unseal,
  type Unsealing,
} from '../../journal/index.ts'
import type { ConsoleDatabase } from './open-database.ts'
import type { HashedKind, UnreadableReason } from './port.ts'
import { type RowOf, rowsOf, tableOf } from './schema.ts'

/** The searchable content of a stored request, as the client wrote it. */
export interface ReadableRequest {
  readonly boundary: string | undefined
  /** The records in the order of the batch, with `undefined` for a record that cannot be read. */
  readonly records: readonly (ReadableRecord | undefined)[]
}

type ReadableRecord = Readonly<Record<'contentId' | 'learner' | 'event', string | undefined>>

export interface IndexOptions {
  readonly how: Unsealing
  /** Decodes a stored request. Rejects with an `AdapterError` if the request cannot be read. */
  readonly readRequest: (payload: Uint8Array) => Promise<ReadableRequest>
  /** Resolves when the index may begin another batch. */
  readonly begin: () => Promise<void>
}

/** Returns a keyed hash of 52 bits, which fits into a number. */
type SearchHash = (kind: HashedKind, id: string) => number

/**
 * Creates the hash for searches, whose key derives from the secret of the journal. Hashing a learner or an event throws `ADP_CONFIGURATION`
 * if the key that encrypts this secret is missing.
 */
export async function openSearchHash({ db }: ConsoleDatabase, { keys }: Unsealing): Promise<SearchHash> {
  const salt = await readSalt(db)
  const hashKeys = createKeyHash(salt)
  const opening = db.transaction().execute((at) => openSecret(at, keys, salt, { forInstance: false }))
  const opened = await opening.catch((cause: unknown) => {
    if (cause instanceof AdapterError && cause.code === 'ADP_CONFIGURATION') return cause
    throw cause
  })
  const hashIds =
    opened instanceof AdapterError
      ? opened
      : createKeyHash(createHmac('sha256', opened).update('markbridge console search').digest())
  return (kind, id) => {
    // The journal already stores this hash for the id of each mark.
    if (kind === 'mark') return toNumber(hashMarkId(hashKeys, id))
    if (hashIds instanceof AdapterError) throw hashIds
    return toNumber(hashIds([`${kind} ${id.toLowerCase()}`])[0] ?? '')
  }
}

const toNumber = (hex: string): number => Number.parseInt(hex.slice(0, 13), 16)

/** Maximum number of batches that one call of the function from `createRecordIndex` indexes. */
const STEP = 50
/** Maximum number of records that one transaction stores. */
const ROWS = 1_000
/** Maximum number of new batches that one call of `addBatches` adds. */
const ADDED = 1_000
/** The age in milliseconds at which an unsettled batch is indexed. The batch is indexed once more when its marks are known. */
const SETTLED_BY_MS = 60_000
/** The maximum length of a searchable text, since databases limit the size of an index entry. Longer texts are not found. */
const MAX_TEXT = 200

interface Pack {
  readonly keyId: string | undefined
  readonly body: Uint8Array
}

/** A stored request. The members of `Pack` are missing once the journal has deleted the request. */
interface KeptRequest extends Partial<Pack> {
  readonly batch: number
  readonly owner: string
  readonly onV2: number
}

interface Todo extends KeptRequest {
  /** 2 if only the marks of the batch are missing in the index. */
  readonly indexed: number
  readonly confirmed: number
}

/** Decrypts a stored request and returns the result of `read`, or the reason why the request cannot be read. */
async function openRequest<Result>(
  { batch, owner, onV2, keyId, body }: KeptRequest,
  how: Unsealing,
  read: (payload: Uint8Array) => Result | Promise<Result>,
): Promise<Result | UnreadableReason> {
  if (onV2 === 1) return 'onV2'
  if (body === undefined) return 'gone'
  try {
    return await read(await unseal({ keyId: keyId ?? null, body }, how, { kind: 'payload', batch, owner }))
  } catch (cause) {
    if (cause instanceof AdapterError) return cause.code === 'ADP_CONFIGURATION' ? 'key' : 'damaged'
    throw cause
  }
}

interface OpenedRequest {
  readonly partner: string
  readonly receivedMs: number
  /** The request as `src/writes` encoded it. */
  readonly payload: Uint8Array
  /** The part of the reply for one record as `src/writes` encoded it, or `undefined` if no part is stored. */
  readonly answer: string | undefined
}

/** Decrypts the request of a batch and the part of one record. Returns `undefined` if there is no such batch. */
export async function readKept(
  { db }: ConsoleDatabase,
  how: Unsealing,
  batch: number,
  position: number,
): Promise<OpenedRequest | UnreadableReason | undefined> {
  const [row] = await rowsOf<KeptRequest & Pick<OpenedRequest, 'partner' | 'receivedMs'>>(db)`
    select b.id as batch, b.partner, b.received_ms as "receivedMs", b.owner,
      b.on_v2 as "onV2", p.key_id as "keyId", p.body
    from journal_batches b left join journal_payloads p on p.batch = b.id where b.id = ${batch}`
  if (row === undefined) return undefined
  const { partner, receivedMs, owner } = row
  return openRequest(row, how, async (payload) => {
    const packs = await rowsOf<Pack>(db)`
      select key_id as "keyId", body from journal_answers where batch = ${batch} order by id`
    const answers = new Map<number, string>()
    for (const { keyId = null, body } of packs) {
      unpackAnswers(await unseal({ keyId, body }, how, { kind: 'answers', batch, owner }), answers)
      await nextTurn()
    }
    return { partner, receivedMs, payload, answer: answers.get(position) }
  })
}

/** Adds the new batches of the journal to the batches that are waiting for the index. Returns true if there may be more new batches. */
export const addBatches = ({ exclusively }: ConsoleDatabase): Promise<boolean> =>
  exclusively(async (db) => {
    const { rows } = await sql<{ batch: number }>`insert into console_batches (batch)
      select id from journal_batches where id > (select last_batch from console_index) order by id limit ${ADDED}
      returning batch`.execute(db)
    if (rows.length === 0) return false
    await sql`update console_index set last_batch = ${Math.max(...rows.map(({ batch }) => batch))}`.execute(
      db,
    )
    return rows.length === ADDED
  })

/**
 * Creates a function that indexes the next batches by the ids in their requests. The function resolves to true if more batches may be
 * waiting.
 */
export function createRecordIndex(
  { db, dialect, exclusively }: ConsoleDatabase,
  { how, readRequest, begin }: IndexOptions,
  hash: SearchHash,
  onServed: (ms: number) => void,
): () => Promise<boolean> {
  const read = async (todo: Todo): Promise<IndexedRequest | UnreadableReason | undefined> =>
    todo.indexed === 2
      ? undefined
      : openRequest(todo, how, async (payload) => hashRequest(await readRequest(payload), hash))
  /** Stores the rows, then marks their batches as done in the last transaction. */
  const keep = async (rows: readonly RecordRow[], done: readonly DoneRow[]): Promise<void> => {
    for (let from = 0; from === 0 || from < rows.length; from += ROWS) {
      // Lets queries of pages run between two transactions.
      await nextTurn()
      const table = tableOf(dialect, recordColumns, rows.slice(from, from + ROWS))
      const sinceMs = performance.now()
      await exclusively(async (at) => {
        // The join leaves out batches that were purged meanwhile.
        await sql`insert into console_records (batch, position, learner, event, mark, content_id)
          select u.batch, u.position, u.learner, u.event, u.mark, u.content_id from ${table} join console_batches c on c.batch = u.batch
          where true on conflict (batch, position) do update set mark = excluded.mark`.execute(at)
        if (from + ROWS < rows.length) return
        await sql`update console_batches set indexed = 1, confirmed = u.confirmed, boundary = coalesce(u.boundary, console_batches.boundary),
          unreadable = coalesce(u.unreadable, console_batches.unreadable) from ${tableOf(dialect, doneColumns, done)}
          where console_batches.batch = u.batch`.execute(at)
      })
      if (dialect === 'postgres') onServed(performance.now() - sinceMs)
    }
  }
  return async () => {
    const todos = await rowsOf<Todo>(db)`
      select c.batch, b.owner, b.on_v2 as "onV2", b.confirmed, c.indexed, p.key_id as "keyId", p.body
      from console_batches c join journal_batches b on b.id = c.batch left join journal_payloads p on p.batch = c.batch
      where c.indexed <> 1 and (b.open = 0 or b.received_ms < ${Date.now() - SETTLED_BY_MS})
      order by c.batch desc limit ${STEP}`
    const rows: RecordRow[] = []
    const done: DoneRow[] = []
    for (const todo of todos) {
      const { batch, confirmed } = todo
      await begin()
      const request = await read(todo)
      const marks = await rowsOf<{ position: number; mark: string }>(db)`
        select position, mark from journal_records where batch = ${batch} and mark is not null`
      const markOf = new Map(marks.map(({ position, mark }) => [position, toNumber(mark)]))
      const known = typeof request === 'object' ? request : undefined
      for (const row of known?.rows ?? marks.map(({ position }) => ({ ...nothing, position })))
        rows.push({ ...row, batch, mark: markOf.get(row.position) })
      const unreadable = typeof request === 'string' ? request : undefined
      done.push({ batch, confirmed, boundary: known?.boundary, unreadable })
      if (rows.length < ROWS) continue
      await keep(rows.splice(0), done.splice(0))
    }
    if (done.length > 0) await keep(rows, done)
    return todos.length === STEP
  }
}

const recordColumns = {
  batch: 'bigint',
  position: 'integer',
  learner: 'bigint',
  event: 'bigint',
  mark: 'bigint',
  content_id: 'text',
} as const
const doneColumns = { batch: 'bigint', confirmed: 'integer', boundary: 'text', unreadable: 'text' } as const

type DoneRow = RowOf<typeof doneColumns>
type RecordRow = RowOf<typeof recordColumns>

const nothing = { learner: undefined, event: undefined, content_id: undefined }

type IndexedRequest = ReturnType<typeof hashRequest>

function hashRequest({ boundary, records }: ReadableRequest, hash: SearchHash) {
  // Most records of a batch have the same event, so its hash is computed once.
  const hashes = new Map<string, number>()
  const hashOf = (kind: HashedKind, id: string | undefined): number | undefined => {
    if (id === undefined) return undefined
    const name = kind + id
    const known = hashes.get(name) ?? hash(kind, id)
    hashes.set(name, known)
    return known
  }
  const rows = records.map((record, position) => ({
    position,
    learner: hashOf('learner', record?.learner),
    event: hashOf('event', record?.event),
    content_id: textOf(record?.contentId),
  }))
  return { boundary: textOf(boundary), rows }
}

const textOf = (text = ''): string | undefined => (text.length > MAX_TEXT || text === '' ? undefined : text)
