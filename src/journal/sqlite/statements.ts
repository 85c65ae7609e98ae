import type { DatabaseSync, StatementSync } from 'node:sqlite'

import { standingStates, stateCodes, supersedableCodes } from '../lifecycle.ts'
import { batchTables } from '../schema/tables.ts'
import { MAX_SAME_IDS } from '../judge-arrival.ts'
import { isOnV2 } from '../side.ts'
import { confirm, isIn, isOpen, reopen, supersede } from '../schema/record-sql.ts'
import {
  changeOfBatch,
  changeOfRecord,
  DROP_SUMS,
  intactRecord,
  OLDER_VERSION,
  sumOfRecord,
  insertedBatchColumns as INSERTED_COLUMNS,
  summedBatchColumns,
} from '../schema/row-sums.ts'
import { MARK_BYTES } from '../store/mark-hash.ts'

/** The statements of a group, prepared once. */
export type GroupStatements = ReturnType<typeof prepareStatements>

const LIVE_OF_KEY = 'from journal_records o indexed by journal_records_live where o.live = 1 and o.key'
const SUPERSEDABLE = `o.state in (${supersedableCodes.join()})`
const NEWEST = 'order by o.batch desc, o.position desc limit 1'

/** Of a record that is inserted. */
const INSERTED = {
  batch: 'batch',
  position: 'position',
  again: 'null',
  attempts: '1',
  superseded: '0',
  dead_letter: '0',
}
const BATCH = [...summedBatchColumns, 'sum'].join()
const OPEN = String(stateCodes.open)
const REFUSED = String(stateCodes.refused)

const newestStanding = (condition: string): string =>
  `select * from (${standingStates
    .map(
      (state) =>
        `select * from (select o.batch, o.position ${LIVE_OF_KEY} = :key and ${isIn(state, 'o.')} ${condition} ${NEWEST})`,
    )
    .join(' union all ')}) order by batch desc, position desc limit 1`

/** Prepares them; a statement of `rows` gives its rows as arrays, which takes less time. */
export function prepareStatements(database: DatabaseSync) {
  const one = (text: string): StatementSync => database.prepare(text)
  const rows = (text: string): StatementSync => {
    const statement = database.prepare(text)
    statement.setReturnArrays(true)
    return statement
  }
  const put = 'on conflict (batch) do update set key_id = excluded.key_id, body = excluded.body'
  return {
    // The commit counts itself: it is one more than all that were there.
    countCommit: one(
      `update journal_commits set commits = commits + 1 where slot = 0
       returning commits, (select value from journal_meta where name = 'identity') as identity`,
    ),
    instance: one(`select ${OLDER_VERSION} as older from journal_instances where id = ?`),
    sameIds: one(
      `select id, ${BATCH} from journal_batches where ids = ? and owner_id = ? and retired = 0
       order by content = ? desc, id desc limit ${MAX_SAME_IDS}`,
    ),
    newestBatch: rows(
      `select coalesce((select seq from sqlite_sequence where name = 'journal_batches'), 0),
         coalesce((select received_ms from journal_batches order by id desc limit 1), 0)`,
    ),
    batch: one(`select ${BATCH} from journal_batches where id = ?`),
    settledBatch: rows(
      `select partner, owner_id, owner, live, side, newcomer, retires, (
         select count(*) from journal_records where batch = ? and position between ? and ? and ${isOpen()})
       from journal_batches where id = ?`,
    ),
    outcome: rows('select state, reason from journal_records where batch = ? and position = ?'),
    // The keys of neighbours, all or those of which older records may be superseded: few, unless a client repeats keys.
    keys: rows(
      `select r.position, r.key from journal_records r where r.batch = ? and r.position between ? and ? and (? = 1 or exists (
         select 1 ${LIVE_OF_KEY} = r.key and ${SUPERSEDABLE} and (o.batch, o.position) < (+r.batch, +r.position)))`,
    ),
    older: rows(
      `select o.batch, o.position, o.state ${LIVE_OF_KEY} = ? and ${SUPERSEDABLE} and (o.batch, o.position) < (?, ?)`,
    ),
    recordsOf: rows(
      `select position, state, live, superseded, key, ${intactRecord()} from journal_records
       where batch = ? order by position`,
    ),
    standing: rows(newestStanding('')),
    standingOnV3: rows(newestStanding(`and not ${isOnV2('o.batch')}`)),
    hasOlder: rows(
      `select 1 from journal_records r
       join journal_records o indexed by journal_records_live
         on o.key = r.key and o.live = 1 and ${isOpen('o.')} and (o.batch, o.position) < (+r.batch, +r.position)
       where r.batch = ? and ${isOpen('r.')} limit 1`,
    ),
    olderOpen: rows(
      `select o.batch, o.position ${LIVE_OF_KEY} = (select key from journal_records where batch = ? and position = ?)
       and ${isOpen('o.')} and (o.batch, o.position) < (?, ?) ${NEWEST}`,
    ),
    insertBatch: one(
      `insert into journal_batches (id, ${INSERTED_COLUMNS.join()}) values (?, ${INSERTED_COLUMNS.map(() => '?').join()})`,
    ),
    payload: one('insert into journal_payloads (batch, key_id, body) values (?, ?, ?)'),
    credentials: one(`insert into journal_credentials (batch, key_id, body) values (?, ?, ?) ${put}`),
    answers: one('insert into journal_answers (batch, key_id, body) values (?, ?, ?)'),
    // The first position and the last, the batch, the keys of all its records, 16 bytes each, twice, and the batch again. Numbered
    // parameters (?1) are not used: which argument they take differs between versions of node:sqlite.
    insertOpen: one(
      `with recursive places (position) as (
         select cast(? as integer) union all select position + 1 from places where position < ?)
       insert into journal_records (batch, position, key, key_copy, state, live, sum)
       select ?, position, substr(?, 16 * position + 1, 16), substr(?, 16 * position + 1, 16), ${OPEN}, 1,
         ${sumOfRecord({ ...INSERTED, batch: '?', state: OPEN, live: '1' })} from places`,
    ),
    insertRefused: one(
      `insert into journal_records (batch, position, key, key_copy, state, live, reason, settled_ms, sum)
       select batch, position, key, key, ${REFUSED}, 0, reason, settled_ms,
         ${sumOfRecord({ ...INSERTED, state: REFUSED, live: '0' })}
       from (select ? as batch, ? as position, ? as key, ? as reason, ? as settled_ms)`,
    ),
    dropSums: DROP_SUMS.map((text) => one(`${text} = ?`)),
    retire: one(
      `update journal_batches set retired = 1, sum = ${changeOfBatch({ retired: '1' })} where id = ?`,
    ),
    accept: one('update journal_batches set newcomer = 0, retires = null where id = ?'),
    forget: batchTables.map(([table, column]) => one(`delete from ${table} where ${column} = ?`)),
    noteAnswered: one(
      `update journal_batches set answered = 1, sum = ${changeOfBatch({ answered: '1' })}
       where id in (select value from json_each(?)) and answered = 0`,
    ),
    // All neighbours with one outcome go with one statement: a call takes longer than a row.
    confirm: one(
      `update journal_records set ${confirm()}, settled_ms = ?, mark = substr(?, ${MARK_BYTES} * (position - ?) + 1, ${MARK_BYTES})
       where batch = ? and position between ? and ? and ${isOpen()}`,
    ),
    settle: one(
      `update journal_records set state = ?, live = ?, again = ?, reason = ?, dead_letter = ?, superseded = ?, settled_ms = ?,
         sum = ${changeOfRecord({ state: '?', live: '?', again: '?', dead_letter: '?', superseded: '?' }, '', { state: OPEN })}
       where batch = ? and position between ? and ? and ${isOpen()}`,
    ),
    supersede: one(
      `update journal_records set ${supersede()}, settled_ms = ?
       where batch = ? and position in (select value from json_each(?))`,
    ),
    reopen: one(`update journal_records set ${reopen()} where batch = ? and position = ?`),
    setOwner: one(
      `update journal_batches set owner = ?, sum = ${changeOfBatch({ owner: '?' })} where id = ?`,
    ),
    addCounts: one(
      `update journal_batches set open = open + ?, live = live + ?,
         sum = ${changeOfBatch({ open: 'open + ?', live: 'live + ?' })} where id = ?`,
    ),
    dropCredentials: one('delete from journal_credentials where batch = ?'),
    ledger: one(
      `insert into journal_ledger (partner, slot, open, confirmed, refused, unknown, parked)
       values (?, 0, ?, ?, ?, ?, ?)
       on conflict (partner, slot) do update set open = open + excluded.open,
         confirmed = confirmed + excluded.confirmed, refused = refused + excluded.refused,
         unknown = unknown + excluded.unknown, parked = parked + excluded.parked`,
    ),
  }
}
