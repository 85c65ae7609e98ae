import { standingStates, stateCodes, supersedableCodes } from '../lifecycle.ts'
import { MAX_SAME_IDS } from '../judge-arrival.ts'
import { isOnV2 } from '../side.ts'
import { confirm, isIn, isOpen, reopen, supersede } from '../schema/record-sql.ts'
import {
  changeOfBatch,
  changeOfRecord,
  intactRecord,
  OLDER_VERSION,
  sumOfRecord,
  insertedBatchColumns,
  summedBatchColumns,
} from '../schema/row-sums.ts'
import { MARK_BYTES } from '../store/mark-hash.ts'

const NEWEST = 'order by n.batch desc, n.position desc limit 1'
const BATCH = [...summedBatchColumns, 'sum']

/**
 * The newest live record of a key that fits, as a subquery: one step into the index of live records, however many there are.
 */
const newestOf = (key: string, condition: string): string =>
  `(select n.batch, n.position from journal_records n where n.key = ${key} and n.live = 1 and ${condition} ${NEWEST})`

const standingOf = (condition: string): string => {
  const each = standingStates.map((state) => newestOf('k.key', `${isIn(state, 'n.')} ${condition}`))
  return `(bigint, int[]) as
      select encode(k.key, 'hex') as key, n.batch, n.position
      from (select distinct key from journal_records where batch = $1 and position = any($2) and live = 1) k
      cross join lateral (select * from (${each.join(' union all ')}) as n ${NEWEST}) n`
}

/** The states of what a confirmed record may supersede, as rows. */
const SUPERSEDABLE = supersedableCodes.map((code) => `(${code})`).join()

const STATE = `case when r.refused then ${stateCodes.refused} else ${stateCodes.open} end`
const LIVE = 'case when r.refused then 0 else 1 end'
const INSERTED = sumOfRecord({
  batch: '$1',
  position: 'r.position',
  state: STATE,
  live: LIVE,
  again: 'null',
  attempts: '1',
  superseded: '0',
  dead_letter: '0',
})
const SETTLED = {
  state: 'u.state',
  live: 'case when u.again is null then 0 else 1 end',
  again: 'u.again',
  dead_letter: 'u.dead_letter',
  superseded: 'u.superseded',
}

/** Inserts a blob: batch, key and body. */
export const insertSealed = {
  payload: 'insert into journal_payloads (batch, key_id, body) values ($1, $2, $3)',
  credentials: `insert into journal_credentials (batch, key_id, body) values ($1, $2, $3)
      on conflict (batch) do update set key_id = excluded.key_id, body = excluded.body`,
  answers: 'insert into journal_answers (batch, key_id, body) values ($1, $2, $3)',
} as const

/** The statements of a group, each prepared once for a connection: the types of its parameters, and its text. */
export const statements = {
  // The counts are those from before the transaction, which is one more in its slot.
  countCommit: `(int) as with counted as (
        insert into journal_commits as c (slot, commits) values ($1, 1)
        on conflict (slot) do update set commits = c.commits + 1)
      select (select value from journal_meta where name = 'identity') as identity,
        (select coalesce(string_agg(slot || ':' || commits, ','), '') from journal_commits) as commits`,
  // An instance that takes this one for dead deletes the row, and so waits for the end of this transaction.
  instance: `(bigint) as
      select ${OLDER_VERSION} as older from journal_instances where id = $1 for key share`,
  sameIds: `(bytea[], bytea[]) as
      select b.id, ${BATCH.map((column) => `b.${column}`).join()}
      from (select distinct ids, content from unnest($1, $2) as u (ids, content)) as u
      cross join lateral (select * from journal_batches where ids = u.ids and retired = 0
        order by content = u.content desc, id desc limit ${MAX_SAME_IDS}) as b
      order by b.id desc`,
  // Taken before the rows are written, since encryption binds them.
  numbers: `(int) as
      select nextval(pg_get_serial_sequence('journal_batches', 'id')) as id,
        (select received_ms from journal_batches order by id desc limit 1) as latest
      from generate_series(1, $1)`,
  // In the order that all take: an instance that takes a batch over waits until the settle is done, or came before.
  lockSettled: `(bigint[]) as
      select id, partner, owner_id, owner, live, side, newcomer, retires from journal_batches where id = any($1)
      order by id for no key update`,
  // The batches of records next to each other, and their first and last positions. Most are all open, which one step into the index shows.
  closed: `(bigint[], int[], int[]) as
      select u.batch, p.position, r.state, r.reason
      from (select * from unnest($1, $2, $3) as u (batch, first, last) where (
          select count(*) from journal_records o
          where o.batch = u.batch and o.position between u.first and u.last and ${isOpen('o.')}) <= u.last - u.first
        offset 0) as u
      cross join lateral generate_series(u.first, u.last) as p (position)
      left join journal_records r on r.batch = u.batch and r.position = p.position
      where r.state is distinct from ${stateCodes.open}`,
  // Records next to each other: whether they supersede (2; 1: if V2 serves them), and whether they may be superseded. One step into the
  // index of live records for each key: for its newest one.
  older: `(bigint[], int[], int[], int[], int[]) as
      with settled as materialized (
        select r.*, row_number() over newest as place, first_value(case when r.stands then r.batch end) over newest as by_batch,
          first_value(case when r.stands then r.position end) over newest as by_position
        from (select r.key, r.batch, r.position, u.is_live,
            u.stands = 2 or (u.stands = 1 and ${isOnV2('u.batch')}) as stands
          from unnest($1, $2, $3, $4, $5) as u (batch, first, last, stands, is_live)
          join journal_records r on r.batch = u.batch and r.position between u.first and u.last) as r
        window newest as (partition by r.key order by r.stands desc, r.batch desc, r.position desc))
      select batch, position, ${stateCodes.open} as state from settled
      where is_live = 1 and (batch, position) < (by_batch, by_position)
      union all
      select o.batch, o.position, o.state from (select * from settled where place = 1 and stands offset 0) as r
      cross join (values ${SUPERSEDABLE}) as s (state)
      cross join lateral (select o.batch, o.position, o.state from journal_records o where o.key = r.key and o.live = 1
        and o.state = s.state and (o.batch, o.position) < (r.batch, r.position) offset 0) as o`,
  lockBatch: `(bigint) as
      select ${BATCH.join()} from journal_batches where id = $1 for no key update`,
  records: `(bigint) as
      select position, state, live, superseded, encode(key, 'hex') as key, ${intactRecord()} as intact
      from journal_records where batch = $1 order by position for no key update`,
  standing: standingOf(''),
  standingOnV3: standingOf(`and not ${isOnV2('n.batch')}`),
  insertBatch: `(bigint, text, text, bytea, bytea, bigint, bigint, int, int, int, int, int, bigint, int, text, bigint) as
      insert into journal_batches (id, ${insertedBatchColumns.join()}) overriding system value
      values ($1, ${insertedBatchColumns.map((_, index) => `$${index + 2}`).join()})`,
  payload: `(bigint, text, bytea) as ${insertSealed.payload}`,
  credentials: `(bigint, text, bytea) as ${insertSealed.credentials}`,
  answers: `(bigint, text, bytea) as ${insertSealed.answers}`,
  // The batch, the first position, the keys from there on, 16 bytes each, and the positions of those that are refused.
  insertRecords: `(bigint, int, bytea, int[], text[], bigint) as
      insert into journal_records (batch, position, key, key_copy, state, live, sum, reason, settled_ms)
      select $1, r.position, r.key, r.key, ${STATE}, ${LIVE}, ${INSERTED}, r.reason,
        case when r.refused then $6 end
      from (select p as position, substr($3, 16 * (p - $2) + 1, 16) as key, f.position is not null as refused, f.reason
        from generate_series($2, $2 + length($3) / 16 - 1) as p
        left join unnest($4, $5) as f (position, reason) on f.position = p) as r`,
  retire: `(bigint[]) as
      update journal_batches set retired = 1, sum = ${changeOfBatch({ retired: '1' })} where id = any($1)`,
  accept: `(bigint) as
      update journal_batches set newcomer = 0, retires = null where id = $1`,
  noteAnswered: `(bigint[]) as
      update journal_batches set answered = 1, sum = ${changeOfBatch({ answered: '1' })}
      where id = any($1) and answered = 0`,
  // The batches of confirmed records next to each other, and their first and last positions.
  confirm: `(bigint[], int[], int[], bigint, bytea[]) as
      update journal_records r set ${confirm('r.')}, settled_ms = $4,
        mark = substr(u.marks, ${MARK_BYTES} * (r.position - u.first) + 1, ${MARK_BYTES})
      from unnest($1, $2, $3, $5) as u (batch, first, last, marks)
      where r.batch = u.batch and r.position between u.first and u.last and ${isOpen('r.')}`,
  settle: `(bigint[], int[], int[], int[], bigint[], text[], int[], int[], bigint) as
      update journal_records r set state = u.state, again = u.again, reason = u.reason, live = ${SETTLED.live},
        dead_letter = u.dead_letter, superseded = u.superseded, settled_ms = $9, sum = ${changeOfRecord(SETTLED, 'r.')}
      from unnest($1, $2, $3, $4, $5, $6, $7, $8)
        as u (batch, first, last, state, again, reason, dead_letter, superseded)
      where r.batch = u.batch and r.position between u.first and u.last and ${isOpen('r.')}`,
  supersede: `(bigint, int[], bigint) as
      update journal_records set ${supersede()}, settled_ms = $3 where batch = $1 and position = any($2)`,
  reopen: `(bigint, int[]) as
      update journal_records set ${reopen()} where batch = $1 and position = any($2)`,
  setOwner: `(bigint, bigint) as
      update journal_batches set owner = $2, sum = ${changeOfBatch({ owner: '$2' })} where id = $1`,
  addCounts: `(bigint[], int[], int[]) as
      update journal_batches b set open = b.open + u.open, live = b.live + u.live,
        sum = ${changeOfBatch({ open: 'b.open + u.open', live: 'b.live + u.live' }, 'b.')}
      from unnest($1, $2, $3) as u (id, open, live) where b.id = u.id`,
  dropCredentials: `(bigint[]) as
      delete from journal_credentials where batch = any($1)`,
  olderOpen: `(bigint, int[]) as
      select r.position, n.batch, n.position as older from journal_records r
      cross join lateral ${newestOf('r.key', `${isOpen('n.')} and (n.batch, n.position) < (r.batch, r.position)`)} n
      where r.batch = $1 and r.position = any($2)`,
  ledger: `(text[], int, bigint[], bigint[], bigint[], bigint[], bigint[]) as
      insert into journal_ledger as l (partner, slot, open, confirmed, refused, unknown, parked)
      select p, $2, o, c, r, u, k from unnest($1, $3, $4, $5, $6, $7) as n (p, o, c, r, u, k)
      on conflict (partner, slot) do update set open = l.open + excluded.open,
        confirmed = l.confirmed + excluded.confirmed, refused = l.refused + excluded.refused,
        unknown = l.unknown + excluded.unknown, parked = l.parked + excluded.parked`,
  commitMarker: `(text, text) as
      insert into journal_meta (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value`,
} as const

/** The name of a statement; the server knows it with `journal_` before it. */
export type StatementName = keyof typeof statements
