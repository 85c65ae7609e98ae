import { createHmac } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { sql } from 'kysely'

import { AdapterError } from '../../errors.ts'
import {
  createKeyHash,
  hashMarkId,
  openMacKey,
  readSalt,
  unpackAnswers,
  unseal,
  type Unsealing,
} from '../../journal/index.ts'
import type { ConsoleDatabase } from './open-database.ts'
import type { HashedKind, UnreadableReason } from './port.ts'
import { type RowOf, rowsOf, tableOf } from './schema.ts'

/** What a kept request says of itself; texts as its client wrote them. */
export interface ReadableRequest {
  readonly boundary: string | undefined
  /** In the order of the batch; undefined: a record that cannot be read. */
  readonly records: readonly (ReadableRecord | undefined)[]
}

type ReadableRecord = Readonly<Record<'contentId' | 'learner' | 'event', string | undefined>>

export interface IndexOptions {
  readonly how: Unsealing
  /** Decodes the request of a batch. Rejects with `AdapterError` for one that cannot be read. */
  readonly readRequest: (payload: Uint8Array) => Promise<ReadableRequest>
  /** Resolves when the work of indexing one more batch may begin. */
  readonly begin: () => Promise<void>
}

/** A keyed hash of 52 bits, which a number holds. */
type SearchHash = (kind: HashedKind, id: string) => number

/**
 * Derives the hash of searches from the key that the journal's keys have sealed; without keys from the salt of the journal. Where the key that
 * has sealed it is missing, the hash of a learner or an event throws `ADP_CONFIGURATION`.
 */
export async function openSearchHash({ db }: ConsoleDatabase, { keys }: Unsealing): Promise<SearchHash> {
  const salt = await readSalt(db)
  const hashKeys = createKeyHash(salt)
  const opening = db.transaction().execute((at) => openMacKey(at, keys, salt, { forInstance: false }))
  const opened = await opening.catch((cause: unknown) => {
    if (cause instanceof AdapterError && cause.code === 'ADP_CONFIGURATION') return cause
    throw cause
  })
  const hashIds =
    opened instanceof AdapterError
      ? opened
      : createKeyHash(createHmac('sha256', opened.key).update('markbridge console search').digest())
  return (kind, id) => {
    // Of a mark's id the journal keeps this hash.
    if (kind === 'mark') return toNumber(hashMarkId(hashKeys, id))
    if (hashIds instanceof AdapterError) throw hashIds
    return toNumber(hashIds([`${kind} ${id.toLowerCase()}`])[0] ?? '')
  }
}

const toNumber = (hex: string): number => Number.parseInt(hex.slice(0, 13), 16)

/** Batches of one round, the newest first: what an operator looks for is mostly new. */
const STEP = 50
/** Records of one transaction. */
const ROWS = 1_000
/** A batch that is not settled by then is indexed as it is, and once more for its marks. */
const SETTLED_BY_MS = 60_000
/** Longer texts are not found: a database bounds the entries of its indexes. */
const MAX_TEXT = 200

/** Something sealed as it is kept. */
interface Pack {
  readonly keyId: string | undefined
  readonly body: Uint8Array
}

/** The request of a batch as it is kept; without a body: not any longer. */
interface KeptRequest extends Partial<Pack> {
  readonly batch: number
  readonly owner: string
  readonly onV2: number
}

interface Todo extends KeptRequest {
  /** 2: only its marks are to be indexed. */
  readonly indexed: number
}

/** Opens a request and reads it, or says why it cannot be read. */
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

/** A request of the journal, opened. */
interface OpenedRequest {
  readonly partner: string
  readonly receivedMs: number
  /** As `writes` encoded it. */
  readonly payload: Uint8Array
  /** The part of the reply of one record, as `writes` encoded it; undefined: none is kept. */
  readonly answer: string | undefined
}

/** Opens the request of one batch, and what its reply said of one record; undefined: there is no batch of this number. */
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

/** Creates what makes records findable by what is inside them, batch by batch; resolves true while there may be more. */
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
  /** Makes records findable, and notes their batches as done with the last of them. */
  const keep = async (rows: readonly RecordRow[], done: readonly DoneRow[]): Promise<void> => {
    for (let from = 0; from === 0 || from < rows.length; from += ROWS) {
      // Questions of pages go in between.
      await nextTurn()
      const table = tableOf(dialect, recordColumns, rows.slice(from, from + ROWS))
      const sinceMs = performance.now()
      await exclusively(async (at) => {
        // Where a batch was purged meanwhile, its row is gone.
        await sql`insert into console_records (batch, position, learner, event, mark, content_id)
          select u.batch, u.position, u.learner, u.event, u.mark, u.content_id from ${table} join console_batches c on c.batch = u.batch
          where true on conflict (batch, position) do update set mark = excluded.mark`.execute(at)
        if (from + ROWS < rows.length) return
        await sql`update console_batches set indexed = 1, boundary = coalesce(u.boundary, console_batches.boundary),
          unreadable = coalesce(u.unreadable, console_batches.unreadable) from ${tableOf(dialect, doneColumns, done)}
          where console_batches.batch = u.batch`.execute(at)
      })
      if (dialect === 'postgres') onServed(performance.now() - sinceMs)
    }
  }
  return async () => {
    const todos = await rowsOf<Todo>(db)`
      select c.batch, b.owner, b.on_v2 as "onV2", c.indexed, p.key_id as "keyId", p.body
      from console_batches c join journal_batches b on b.id = c.batch left join journal_payloads p on p.batch = c.batch
      where c.indexed <> 1 and (c.open = 0 or c.received_ms < ${Date.now() - SETTLED_BY_MS})
      order by c.batch desc limit ${STEP}`
    const rows: RecordRow[] = []
    const done: DoneRow[] = []
    for (const todo of todos) {
      const { batch } = todo
      await begin()
      const request = await read(todo)
      const marks = await rowsOf<{ position: number; mark: string }>(db)`
        select position, mark from journal_records where batch = ${batch} and mark is not null`
      const markOf = new Map(marks.map(({ position, mark }) => [position, toNumber(mark)]))
      const known = typeof request === 'object' ? request : undefined
      for (const row of known?.rows ?? marks.map(({ position }) => ({ ...nothing, position })))
        rows.push({ ...row, batch, mark: markOf.get(row.position) })
      const unreadable = typeof request === 'string' ? request : undefined
      done.push({ batch, boundary: known?.boundary, unreadable })
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
const doneColumns = { batch: 'bigint', boundary: 'text', unreadable: 'text' } as const

/** A batch that was read, as far as it can be. */
type DoneRow = RowOf<typeof doneColumns>
type RecordRow = RowOf<typeof recordColumns>

const nothing = { learner: undefined, event: undefined, content_id: undefined }

/** A request as it is indexed. */
type IndexedRequest = ReturnType<typeof hashRequest>

function hashRequest({ boundary, records }: ReadableRequest, hash: SearchHash) {
  // Records of one batch are mostly of one event.
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
