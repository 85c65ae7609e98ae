import type { DatabaseSync, StatementSync } from 'node:sqlite'

import { MAX_SAME_IDS } from '../same-ids.ts'
import {
  changeOfBatch,
  changeOfRecord,
  DROP_SUMS,
  intactRecord,
  OLDER_VERSION,
  sumOfRecord,
  summedBatchColumns,
} from '../schema/row-sums.ts'
import { fromPlace, placeOf } from '../store/place.ts'

/** The statements of a group, prepared once. */
export interface GroupStatements {
  readonly instance: StatementSync
  readonly countCommit: StatementSync
  readonly sameIds: StatementSync
  readonly latestReceipt: StatementSync
  readonly retire: StatementSync
  readonly answered: StatementSync
  readonly insertBatch: StatementSync
  readonly insertPayload: StatementSync
  readonly dropSums: readonly StatementSync[]
  readonly putCredentials: StatementSync
  readonly insertOpen: StatementSync
  readonly insertRefused: StatementSync
  readonly hasOlder: StatementSync
  readonly nearestOlder: StatementSync
  readonly nearestOlderOf: StatementSync
  readonly newestStanding: StatementSync
  readonly batch: StatementSync
  readonly record: StatementSync
  readonly settle: StatementSync
  readonly confirm: StatementSync
  readonly superseded: StatementSync
  readonly supersede: StatementSync
  readonly count: StatementSync
  readonly dropCredentials: StatementSync
  readonly insertAnswers: StatementSync
  readonly own: StatementSync
  readonly reopen: StatementSync
  readonly recordsOf: StatementSync
  readonly withdraw: readonly StatementSync[]
  readonly ledger: StatementSync
}

const LIVE_OF_KEY = 'from journal_records o indexed by journal_records_live where o.live = 1 and o.key'

/** Of a record that is inserted; a place and a batch have these names in its statement. */
const INSERTED = {
  batch: 'batch',
  position: 'position',
  again: 'null',
  attempts: '1',
  superseded: '0',
  dead_letter: '0',
}

/** Prepares the statements; their text is not built from anything that a client sent. */
export function prepareStatements(database: DatabaseSync): GroupStatements {
  const prepare = (text: string): StatementSync => database.prepare(text)
  const rows = (text: string): StatementSync => {
    const statement = database.prepare(text)
    statement.setReturnArrays(true)
    return statement
  }
  const older = fromPlace('f.older')
  const put = 'on conflict (batch) do update set key_id = excluded.key_id, body = excluded.body'
  return {
    instance: prepare(`select ${OLDER_VERSION} as older from journal_instances where id = ?`),
    countCommit: prepare(
      `update journal_commits set commits = commits + 1 where slot = 0
       returning commits, (select value from journal_meta where name = 'identity') as identity`,
    ),
    sameIds: prepare(
      `select id, ${summedBatchColumns.join()}, sum from journal_batches
       where ids = ? and owner_id = ? and retired = 0 order by id desc limit ${MAX_SAME_IDS}`,
    ),
    latestReceipt: prepare('select received_ms from journal_batches order by id desc limit 1'),
    retire: prepare(
      `update journal_batches set retired = 1, sum = ${changeOfBatch({ retired: '1' })} where id = ?`,
    ),
    answered: prepare(
      `update journal_batches set answered = 1, sum = ${changeOfBatch({ answered: '1' })}
       where id in (select value from json_each(?)) and answered = 0`,
    ),
    insertBatch: prepare(
      `insert into journal_batches (partner, owner_id, ids, content, received_ms, owner, open, live, sum)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    dropSums: DROP_SUMS.map((text) => prepare(`${text} = ?`)),
    insertPayload: prepare('insert into journal_payloads (batch, key_id, body) values (?, ?, ?)'),
    putCredentials: prepare(`insert into journal_credentials (batch, key_id, body) values (?, ?, ?) ${put}`),
    // The first position and the last, the batch, the keys of all its records, 16 bytes each, twice, and the batch again. Numbered
    // parameters (?1) are not used: which argument they take differs between versions of node:sqlite.
    insertOpen: prepare(
      `with recursive places (position) as (
         select cast(? as integer) union all select position + 1 from places where position < ?)
       insert into journal_records (batch, position, key, key_copy, state, live, sum)
       select ?, position, substr(?, 16 * position + 1, 16), substr(?, 16 * position + 1, 16), 0, 1,
         ${sumOfRecord({ ...INSERTED, batch: '?', state: '0', live: '1' })} from places`,
    ),
    insertRefused: prepare(
      `insert into journal_records (batch, position, key, key_copy, state, live, reason, settled_ms, sum)
       select batch, position, key, key, 2, 0, reason, settled_ms, ${sumOfRecord({ ...INSERTED, state: '2', live: '0' })}
       from (select ? as batch, ? as position, ? as key, ? as reason, ? as settled_ms)`,
    ),
    // Ends at the first one.
    hasOlder: prepare(
      `select 1 from journal_records r
       join journal_records o indexed by journal_records_live
         on o.key = r.key and o.live = 1 and o.state = 0 and o.batch < +r.batch
       where r.batch = ? and r.state = 0 limit 1`,
    ),
    // For each key once, not for each record: a batch may have thousands of one key.
    nearestOlder: rows(
      `select f.position, ${older.batch}, ${older.position} from (
         select min(r.position) as position, (
           select ${placeOf('o')} ${LIVE_OF_KEY} = r.key and o.state = 0 and o.batch < +r.batch
           order by o.batch desc, o.position desc limit 1) as older
         from journal_records r where r.batch = ? and r.state = 0 group by r.key) f
       where f.older is not null`,
    ),
    // What was opened or may have been applied: nothing older of the key is opened again.
    newestStanding: rows(
      `select * from (
         select * from (select o.batch, o.position ${LIVE_OF_KEY} = :key and o.state = 0
           order by o.batch desc, o.position desc limit 1)
         union all
         select * from (select o.batch, o.position ${LIVE_OF_KEY} = :key and o.state = 3
           order by o.batch desc, o.position desc limit 1))
       order by batch desc, position desc limit 1`,
    ),
    // What others opened of its own batch, it waits for as well.
    nearestOlderOf: rows(
      `select o.batch, o.position ${LIVE_OF_KEY} = ? and o.state = 0 and (o.batch, o.position) < (?, ?)
       order by o.batch desc, o.position desc limit 1`,
    ),
    batch: prepare(`select ${summedBatchColumns.join()}, sum from journal_batches where id = ?`),
    record: prepare('select state, reason from journal_records where batch = ? and position = ?'),
    settle: prepare(
      `update journal_records set state = ?, live = ?, again = ?, reason = ?, dead_letter = ?,
         superseded = ?, settled_ms = ?,
         sum = ${changeOfRecord({ state: '?', live: '?', again: '?', dead_letter: '?', superseded: '?' }, '', { state: '0' })}
       where batch = ? and position = ? and state = 0`,
    ),
    confirm: prepare(
      `update journal_records set state = 1, live = 0, again = null, reason = null, dead_letter = 0, settled_ms = ?,
         sum = ${changeOfRecord({ state: '1', live: '0', again: 'null', dead_letter: '0' }, '', { state: '0' })}
       where batch = ? and position between ? and ? and state = 0`,
    ),
    superseded: rows(
      `select distinct o.batch, o.position, o.state from journal_records r
       join journal_records o indexed by journal_records_live
         on o.key = r.key and o.live = 1 and o.state in (1, 2, 3, 4)
       where r.batch = ? and r.position between ? and ? and r.state = 1
         and (o.batch, o.position) < (+r.batch, +r.position)`,
    ),
    supersede: prepare(
      `update journal_records set live = 0, again = null, superseded = 1, state = ?,
         reason = iif(state = 4, 'superseded', reason), settled_ms = ?,
         sum = ${changeOfRecord({ live: '0', again: 'null', superseded: '1', state: '?' })}
       where batch = ? and position = ?`,
    ),
    count: prepare(
      `update journal_batches set open = open + ?, live = live + ?,
         sum = ${changeOfBatch({ open: 'open + ?', live: 'live + ?' })}
       where id = ? returning live`,
    ),
    dropCredentials: prepare('delete from journal_credentials where batch = ?'),
    insertAnswers: prepare('insert into journal_answers (batch, key_id, body) values (?, ?, ?)'),
    own: prepare(`update journal_batches set owner = ?, sum = ${changeOfBatch({ owner: '?' })} where id = ?`),
    // What it was settled with last stays, so that it can be read while it is open.
    reopen: prepare(
      `update journal_records set state = 0, attempts = attempts + 1,
         sum = ${changeOfRecord({ state: '0', attempts: 'attempts + 1' })}
       where batch = ? and position = ? and state <> 0 and live = 1`,
    ),
    recordsOf: rows(
      `select position, state, live, key, ${intactRecord()} from journal_records where batch = ? order by position`,
    ),
    withdraw: ['records', 'answers', 'payloads', 'credentials']
      .map((table) => prepare(`delete from journal_${table} where batch = ?`))
      .concat(prepare('delete from journal_batches where id = ?')),
    ledger: prepare(
      `insert into journal_ledger (partner, slot, open, confirmed, refused, unknown, parked)
       values (?, 0, ?, ?, ?, ?, ?)
       on conflict (partner, slot) do update set open = open + excluded.open,
         confirmed = confirmed + excluded.confirmed, refused = refused + excluded.refused,
         unknown = unknown + excluded.unknown, parked = parked + excluded.parked`,
    ),
  }
}
