import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'

import { sql } from 'kysely'

import { guid, legacyBatch } from '../../bench/legacy-batch.ts'
import { rowsOf, tableOf } from '../../src/console/data/schema.ts'
import { createSlicing } from '../../src/http/slices.ts'
import { openJournal, recordStates, stateCodes, stateColumns } from '../../src/journal/index.ts'
import { toStateColumns } from '../../src/journal/lifecycle.ts'
import { openStore } from '../../src/journal/open-store.ts'
import { createKeyHash, encodeMark, type JournalKey, seal } from '../../src/journal/seal.ts'
import { readMeta } from '../../src/journal/schema.ts'
import { encodeStoredRequest } from '../../src/writes/stored-request.ts'

// Fills a new journal with records by direct inserts into its tables: one batch of 20,000 records, twenty batches of 1,000, single records,
// and registers of 30. Usage: node test/console/fill.ts --journal sqlite:/tmp/j/journal.db --records 1000000 [--settled]

/** The key that encrypts the requests. */
export const fillKey: JournalKey = { id: 'fill', key: Buffer.alloc(32, 9) }

const counted = Object.fromEntries(Object.values(stateColumns).map((column) => [column, 'integer' as const]))
const states = sql.raw(Object.keys(counted).join())

const PARTNERS = ['acme', 'bromley', 'castle', 'dover', 'eton']
const LEARNERS = 50_000
const SPAN_MS = 7 * 86_400_000
/** The maximum number of batches in one transaction. */
const STEP = 100

export interface Filled {
  /** The number of the batch with 20,000 records. */
  readonly large: number
  readonly batches: number
  readonly records: number
}

interface FillOptions {
  readonly url: string
  readonly records: number
  /** True if no record is in flight or due, so that an adapter on this journal has no recovery to do. */
  readonly settled: boolean
  readonly onProgress?: (records: number) => void
}

export async function fillJournal({ url, records, settled, onProgress }: FillOptions): Promise<Filled> {
  const journal = await openJournal({ url, keys: [fillKey] })
  await journal.close()
  const store = openStore(url, { timeoutMs: 600_000, wallMs: Date.now })
  const { db, dialect } = store
  const hashKeys = createKeyHash(Buffer.from((await readMeta(db, 'salt')) ?? '', 'hex'))
  const slices = createSlicing().open()
  const sizes = sizesOf(records)
  const startMs = Date.now() - SPAN_MS
  const ledger = new Map(PARTNERS.map((partner) => [partner, [0, 0, 0, 0, 0]]))
  let [batch, done, learner] = [0, 0, 0]
  const toBatch = async (size: number) => {
    batch += 1
    const partner = PARTNERS[batch % PARTNERS.length] ?? ''
    const receivedMs = Math.floor(startMs + (SPAN_MS * done) / records)
    const isNew = !settled && batch > sizes.length - 20
    const { bytes, contentType } = legacyBatch(size, batch, learner)
    learner = (learner + size) % LEARNERS
    const rows = Array.from({ length: size }, (_, position) => {
      const at = batch * 7 + position
      const kind = isNew ? 'open' : at % 200 === 0 ? 'unknown' : at % 100 === 0 ? 'parked' : at % 25 === 0 ? 'refused' : 'confirmed' // prettier-ignore
      const state = settled && (kind === 'unknown' || kind === 'parked') ? 'refused' : kind
      const isActive = state === 'open' || state === 'unknown' || state === 'parked'
      return {
        ...{ batch, position, state: stateCodes[state], active: isActive ? 1 : 0 },
        key: hashKeys([`${guid(1, learner + position)} ${guid(2, batch)}`])[0] ?? '',
        retry: isActive && state !== 'open' ? Date.now() + 600_000 : null,
        reason:
          state === 'confirmed' || state === 'open' ? null : state === 'refused' ? 'ATT_VAL_2' : 'timeout',
        dead_letter: state === 'refused' && at % 50 === 0 ? 1 : 0,
        settled_ms: state === 'open' ? null : receivedMs + 800,
        mark: state === 'confirmed' ? encodeMark(hashKeys, { externalId: guid(4, done + position), recordedMs: receivedMs }) : null, // prettier-ignore
      }
    })
    done += size
    for (const { state } of rows) {
      const totals = ledger.get(partner)
      if (totals !== undefined) totals[state] = (totals[state] ?? 0) + 1
    }
    const request = { kind: 'batch', contentType, context: '', layout: 'flat', dataEnvelope: false, msgtypeResponse: false, prefer: '', accept: '' } as const // prettier-ignore
    const payload = await encodeStoredRequest({ request, replyId: guid(5, batch), body: bytes }, slices)
    const content = createHash('sha256').update(String(batch)).digest('hex')
    const head = {
      ...{
        id: batch,
        partner,
        owner: partner,
        content,
        received_ms: receivedMs,
        instance: 1,
        bytes: bytes.length,
      },
      ...toStateColumns(recordStates.map((_, code) => rows.filter(({ state }) => state === code).length)),
      active: rows.filter(({ active }) => active === 1).length,
    }
    return { head, rows, sealed: await seal(payload, fillKey, { kind: 'payload', batch, owner: partner }) }
  }
  try {
    for (let from = 0; from < sizes.length; from += STEP) {
      const made: Awaited<ReturnType<typeof toBatch>>[] = []
      for (const size of sizes.slice(from, from + STEP)) made.push(await toBatch(size))
      await db.transaction().execute(async (at) => {
        const heads = tableOf(dialect, { id: 'bigint', partner: 'text', owner: 'text', content: 'text', received_ms: 'bigint', instance: 'bigint', bytes: 'bigint', ...counted, active: 'integer' }, made.map(({ head }) => head)) // prettier-ignore
        await sql`insert into journal_batches (id, partner, owner, content, received_ms, instance, bytes, ${states}, active, on_v2, newcomer, retires)
          select id, partner, owner, content, received_ms, instance, bytes, ${states}, active, 0, 0, '[]' from ${heads}`.execute(
          at,
        )
        const columns = sql.raw(
          'batch, position, state, active, key, retry, reason, dead_letter, settled_ms, mark',
        )
        const rows = tableOf(dialect, { batch: 'bigint', position: 'integer', state: 'integer', active: 'integer', key: 'text', retry: 'bigint', reason: 'text', dead_letter: 'integer', settled_ms: 'bigint', mark: 'text' }, made.flatMap((one) => one.rows)) // prettier-ignore
        await sql`insert into journal_records (${columns}) select ${columns} from ${rows}`.execute(at)
        const bodies = made.map(({ head, sealed }) => sql`(${head.id}, ${sealed.keyId}, ${sealed.body})`)
        await sql`insert into journal_payloads (batch, key_id, body) values ${sql.join(bodies)}`.execute(at)
      })
      onProgress?.(done)
    }
    for (const [partner, [open, confirmed, refused, unknown, parked]] of ledger)
      await sql`insert into journal_ledger (partner, open, confirmed, refused, unknown, parked, not_applied)
        values (${partner}, ${open}, ${confirmed}, ${refused}, ${unknown}, ${parked}, 0)`.execute(db)
    await sql`update journal_commits set last_batch = ${batch}`.execute(db)
    const [large] = await rowsOf<{ batch: number }>(db)`
      select batch from journal_records where position = 19999`
    return { large: large?.batch ?? 0, batches: batch, records: done }
  } finally {
    await store.close()
  }
}

/** Returns the sizes of batches that together have this many records. */
function sizesOf(records: number): readonly number[] {
  const sizes: number[] = []
  let left = records
  for (const [size, count] of [
    [20_000, 1],
    [1_000, 20],
    [1, 5_000],
  ] as const)
    // prettier-ignore
    for (let made = 0; made < count && left >= records / 2; made += 1, left -= size) sizes.push(size)
  for (; left > 0; left -= 30) sizes.push(Math.min(30, left))
  // Shuffles the sizes, so that large and small batches are spread over the whole time.
  return sizes.map((size, at) => [Math.imul(at + 1, 0x9e3779b1) >>> 0, size] as const).sort(([one], [other]) => one - other).map(([, size]) => size) // prettier-ignore
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { journal: { type: 'string' }, records: { type: 'string' }, settled: { type: 'boolean' } } }) // prettier-ignore
  const { journal: url = '', records = '1000000', settled = false } = values
  const startMs = performance.now()
  const filled = await fillJournal({ url, records: Number(records), settled })
  console.log(JSON.stringify({ ...filled, seconds: Math.round((performance.now() - startMs) / 1_000) }))
}
