import { standingStates, stateCodes, stateColumns, supersededCodes } from './lifecycle.ts'
import { processColumns } from './process-identity.ts'
import type { Dialect } from './schema.ts'

/** A value of a statement. A list of numbers is passed as JSON. */
export type Value = number | string | null | Uint8Array

/** Rows that a statement reads as its table `u`. A statement with such rows has no other parameters. */
export type Rows = readonly object[]

export type StatementValues = readonly [Rows] | readonly Value[]

export type RunStatement = <Row>(name: StatementName, ...values: StatementValues) => Promise<readonly Row[]>

export type StatementName = keyof ReturnType<typeof createStatements>

/** Maximum number of earlier batches with the same owner and ids that are examined: those with the same content first, then the newest. */
export const MAX_SAME_IDS = 100

/** A number above the number of records in any batch, because a body with so many records would exceed every size limit. */
const POSITIONS = 16_777_216

/**
 * The SQL that differs between the two databases.
 *
 * `rows`: the rows of a statement as table `u`. SQLite runs the statement once per row with a parameter per column, because reading columns
 * from JSON takes several times as long. PostgreSQL gets all rows as one JSON text. `elements`: the elements of a JSON array as table `e`,
 * with columns `value` and `n`, counted from 0. `update`: an update from table `u`; `set` may use its columns.
 *
 * `lookup`: for each row of `outer`, the matching rows of a table. `isListed`: a condition that a column is among the numbers of a list.
 * PostgreSQL plans its statements while the tables are nearly empty, when a scan of a whole table seems as cheap as an index search for
 * each row. `lookup` and `isListed` are written so that PostgreSQL can only search the index.
 */
const dialects = {
  sqlite: {
    rows: (columns: readonly string[]): string =>
      `(select ${columns.map((column) => `$${nameOf(column)} as ${nameOf(column)}`).join()}) as u`,
    update: (table: string, _columns: readonly string[], set: string, where: string): string =>
      `update ${table} set ${set} where ${where}`.replaceAll('u.', '$'),
    elements: (parameter: string): string => `(select key as n, value from json_each(${parameter})) as e`,
    lookup: (outer: string, table: string, alias: string, condition: string): string =>
      `${outer} join ${table} ${alias} on ${condition}`,
    isListed: (column: string, parameter: string): string =>
      `${column} in (select value from json_each(${parameter}))`,
  },
  postgres: {
    rows: (columns: readonly string[]): string => `json_to_recordset($1::json) as u (${columns.join()})`,
    update: (table: string, columns: readonly string[], set: string, where: string): string =>
      `update ${table} set ${set} from json_to_recordset($1::json) as u (${columns.join()}) where ${where}`,
    elements: (parameter: string): string =>
      `(select n - 1 as n, value from json_array_elements_text(${parameter}::json) with ordinality as j (value, n)) as e`,
    lookup: (outer: string, table: string, alias: string, condition: string): string =>
      `${outer} cross join lateral (select * from ${table} ${alias} where ${condition} offset 0) ${alias}`,
    isListed: (column: string, parameter: string): string =>
      `${column} = any (array(select value::bigint from json_array_elements_text(${parameter}::json)))`,
  },
} as const

const nameOf = (column: string): string => column.split(' ')[0] ?? ''

const states = Object.values(stateColumns)
const counts = [...states, 'active']
const batchColumns = [
  ...[
    'id bigint',
    'partner text',
    'owner text',
    'ids text',
    'content text',
    'received_ms bigint',
    'age_ms bigint',
  ],
  ...['instance bigint', ...counts.map((column) => `${column} integer`), 'on_v2 integer', 'newcomer integer'],
  ...['retires text', 'bytes bigint'],
]
const outcomeColumns = [
  ...['state integer', 'active integer', 'retry bigint', 'reason text', 'dead_letter integer'],
  ...['superseded integer', 'settled_ms bigint', 'mark text'],
]

/** Returns SQL that is true for an open record. `alias` includes its trailing dot. */
export const isOpen = (alias = ''): string => `${alias}state = ${stateCodes.open}`

export const isOnV2 = (batch: string): string =>
  `exists (select 1 from journal_batches s where s.id = ${batch} and s.on_v2 = 1)`

/** Returns SQL that is true for an open batch of a dead instance. `instance` is the number of the instance that asks. */
export const isOrphaned = (instance: string): string =>
  `open > 0 and instance <> ${instance} and instance not in (select id from journal_instances where lost = 0)`

/** Returns SQL for the place of a record in the order of all records. The number may exceed the exact integers of JavaScript. */
const placeOf = (alias: string): string => `${alias}batch * ${POSITIONS} + ${alias}position`

export const fromPlace = (place: string, batch: string, position: string): string =>
  `${place} / ${POSITIONS} as ${batch}, ${place} % ${POSITIONS} as ${position}`

/** Returns SQL for the place of the newest active record of a key that meets a condition. The search takes one step in an index. */
export const newestOf = (key: string, condition: string): string =>
  `(select ${placeOf('o.')} from journal_records o where o.key = ${key} and o.active = 1 and ${condition}
    order by o.batch desc, o.position desc limit 1)`

export function createStatements(dialect: Dialect) {
  const { rows, update, elements, lookup, isListed } = dialects[dialect]
  const names = batchColumns.map(nameOf).join()
  // Uses one subquery per state, because each subquery takes one step in the index. With "exists" the database may read other active records.
  const hasOlder = [...supersededCodes.keys()]
    .map(
      (code) => `(select 1 from journal_records o where o.key = r.key and o.active = 1 and o.state = ${code}
        and (o.batch, o.position) < (+r.batch, +r.position) limit 1) is not null`,
    )
    .join(' or ')
  const hasLeft = newestOf(
    'r.key',
    `o.state = ${stateCodes.unknown} and (o.batch, o.position) > (+r.batch, +r.position) and ${isOnV2('o.batch')}`,
  )
  const standing = (condition: string): string => {
    const newest = standingStates.map((state) =>
      newestOf('e.value', `o.state = ${stateCodes[state]} ${condition}`),
    )
    return `with f as materialized (${newest
      .map((place) => `select e.value as key, ${place} as place from ${elements('$1')}`)
      .join(' union all ')})
      select key, ${fromPlace('max(place)', 'batch', 'position')} from f where place is not null group by key`
  }
  return {
    // Counts the commit and reserves numbers for its batches. `OpeningRow` describes the result.
    open: `update journal_commits set commits = commits + 1, marker = $2,
        last_batch = (select max(last_batch) from journal_commits) + $3
      where slot = $1
      returning commits, last_batch as "lastBatch", (select commits from journal_commits where slot = $5) as before,
        (select marker from journal_commits where slot = $5) as "beforeMarker", (select id from journal_instances where id = $4 and lost = 0 and ${processColumns} = $6) as instance,
        (select value from journal_meta where name = 'identity') as identity,
        (select received_ms from journal_batches order by id desc limit 1) as "latestMs"`,
    findMarker: 'select marker from journal_commits where slot = $1',
    // Ranks batches with the same content first, so that other batches with the same ids cannot push them out of the limit.
    sameIds: `select * from (
        select u.n, b.id as batch, b.on_v2 as "onV2", b.content, b.received_ms as "receivedMs", b.age_ms as "ageMs", b.open, b.answered,
          row_number() over (partition by u.n order by case when b.content = u.content then 0 else 1 end, b.id desc) as rank
        from ${lookup(rows(['n integer', 'ids text', 'owner text', 'content text']), 'journal_batches', 'b', 'b.ids = u.ids and b.owner = u.owner and b.retired = 0')}) s
      where rank <= ${MAX_SAME_IDS} order by n, rank`,
    newestOpen: `with f as materialized (
        select e.value as key, ${newestOf('e.value', isOpen('o.'))} as place from ${elements('$1')})
      select key, ${fromPlace('place', 'batch', 'position')} from f where place is not null`,
    standing: standing(''),
    standingOnV3: standing(`and not ${isOnV2('o.batch')}`),
    olderOpen: `with f as materialized (
        select r.key, ${newestOf('r.key', `${isOpen('o.')} and (o.batch, o.position) < (+r.batch, +r.position)`)} as place
        from journal_records r where r.batch = $1 and ${isListed('r.position', '$2')})
      select key, ${fromPlace('place', 'batch', 'position')} from f where place is not null`,
    batches: `select id as batch, partner, owner, instance, open, on_v2 as "onV2", newcomer, retires
      from journal_batches where ${isListed('id', '$1')}`,
    recordsIn: `select r.batch, r.position, r.state, r.reason, r.key, ${hasOlder} as "hasOlder", ${hasLeft} is not null as "isSuperseded"
      from ${rows(['batch bigint', 'position integer'])} join journal_records r on r.batch = u.batch and r.position = u.position`,
    recordsOf: `select position, state, active, superseded, reason, key from journal_records where batch = $1 order by position`,
    insertBatches: `insert into journal_batches (${names}) select ${names} from ${rows(batchColumns)}`,
    // Parameters: the batch, the position of the first record, and the keys.
    insertRecords: `insert into journal_records (batch, position, key, state, active)
      select $1, $2 + e.n, e.value, ${stateCodes.open}, 1 from ${elements('$3')}`,
    payload: 'insert into journal_payloads (batch, key_id, body) values ($1, $2, $3)',
    credentials: `insert into journal_credentials (batch, key_id, body) values ($1, $2, $3)
      on conflict (batch) do update set key_id = excluded.key_id, body = excluded.body`,
    answers: 'insert into journal_answers (batch, key_id, body) values ($1, $2, $3)',
    settle: update(
      'journal_records as r',
      ['batch bigint', 'position integer', ...outcomeColumns],
      outcomeColumns.map((column) => `${nameOf(column)} = u.${nameOf(column)}`).join(),
      'r.batch = u.batch and r.position = u.position',
    ),
    // Ends the active records of a key that are in the state `old` and older than the record at `batch` and `position`.
    supersede: `update journal_records as r set state = x.next, active = 0, retry = null, reason = coalesce(x.why, r.reason),
        superseded = 1, mark = null, settled_ms = x.ms
      from (select o.batch as b, o.position as p, u.next, u.reason as why, u.settled_ms as ms
        from ${lookup(
          rows([
            'key text',
            'batch bigint',
            'position integer',
            'old integer',
            'next integer',
            'reason text',
            'settled_ms bigint',
          ]),
          'journal_records',
          'o',
          'o.key = u.key and o.active = 1 and o.state = u.old and (o.batch, o.position) < (u.batch, u.position)',
        )}) x
      where r.batch = x.b and r.position = x.p returning batch`,
    // Leaves the previous outcome in the row, so that it can be read while the record is open again.
    reopen: `update journal_records set state = ${stateCodes.open}, attempts = attempts + 1
      where batch = $1 and ${isListed('position', '$2')}`,
    changeCounts: update(
      'journal_batches as b',
      ['id bigint', ...counts.map((column) => `${column} integer`)],
      counts.map((column) => `${column} = b.${column} + u.${column}`).join(),
      'b.id = u.id',
    ),
    takeOver: `update journal_batches set instance = $1 where ${isOrphaned('$1')} returning id as batch`,
    changeInstance: 'update journal_batches set instance = $2, asked_by = null where id = $1',
    dropCredentials: `delete from journal_credentials where batch in (
      select id from journal_batches where ${isListed('id', '$1')} and active = 0)`,
    retire: `update journal_batches set retired = 1 where ${isListed('id', '$1')}`,
    accept: `update journal_batches set newcomer = 0, retires = '[]' where ${isListed('id', '$1')}`,
    recordAnswered: `update journal_batches set answered = 1 where ${isListed('id', '$1')} and answered = 0`,
    deletePayloads: `delete from journal_payloads where ${isListed('batch', '$1')}`,
    deleteCredentials: `delete from journal_credentials where ${isListed('batch', '$1')}`,
    deleteAnswers: `delete from journal_answers where ${isListed('batch', '$1')}`,
    deleteRecords: `delete from journal_records where ${isListed('batch', '$1')}`,
    deleteBatches: `delete from journal_batches where ${isListed('id', '$1')}`,
    addToLedger: `insert into journal_ledger as l (partner, ${states.join()})
      select partner, ${states.join()} from ${rows(['partner text', ...states.map((one) => `${one} bigint`)])}
      where true
      on conflict (partner) do update set ${states.map((one) => `${one} = l.${one} + excluded.${one}`).join()}`,
  } as const
}
