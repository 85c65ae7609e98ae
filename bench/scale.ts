import { readdirSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { Client } from 'pg'

import { startPostgres } from '../test/support/start-postgres.ts'
import { type Child, startChild } from './child.ts'
import { median } from './rounds.ts'

// `npm run simulate:scale` measures the cost of a mark for the adapter and for PostgreSQL, and computes what many schools need
// (docs/scale.md). It measures processor time, because other programs on the machine change it less than elapsed time.

const { values } = parseArgs({
  options: {
    schools: { type: 'string', default: '24000' },
    pupils: { type: 'string', default: '375' },
    rate: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '5' },
  },
})
const [schools, pupils, rate, rounds] = [values.schools, values.pupils, values.rate, values.rounds].map(
  Number,
)
const [CLIENTS, ROUND_MS, RECORDS] = [16, 2_000, 30]
const SESSIONS_A_DAY = 2
/** The planned share of busy time of a processor core. The rest is for garbage collection and bursts. */
const BUSY = 0.6
/** The assumed time of a flush of PostgreSQL's log to disk. A commit holds the lock of the journal during the flush. */
const FLUSH_MS = 2
/** The assumed time in which V3 answers a post of one record. */
const V3_MS = 100
/** The service's limit of calls in a second for each subscription key, and its limit of records in a `$batch`. */
const [CALLS_PER_KEY, RECORDS_PER_CALL] = [5, 100]
/** Tables whose rows are deleted after `journal.replayForMs`. The rows of `KEPT_TABLES` stay for `journal.keepRecordsMs`. */
const DAY_TABLES = ['journal_payloads', 'journal_answers', 'journal_credentials']
const KEPT_TABLES = ['journal_records', 'journal_batches']
const KEEP_DAYS = 90

/** The cost of one mark, and the rate at which the costs were measured. */
interface Cost {
  readonly adapterMicros: number
  readonly withoutJournalMicros: number
  readonly postgresMicros: number
  readonly walBytes: number
  readonly dayBytes: number
  readonly keptBytes: number
  readonly statements: number
  readonly commits: number
  readonly marksPerSecond: number
}

async function measure(): Promise<Cost> {
  const postgres = await startPostgres()
  const children: Child[] = []
  const start = async (script: string, args: readonly (string | number)[]): Promise<Child> => {
    const child = await startChild(script, args, undefined)
    children.push(child)
    return child
  }
  const url = await postgres.createDatabase()
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const upstream = await start('upstream-process.ts', [])
    const address = `http://127.0.0.1:${upstream.ready['port'] ?? 0}`
    const sideWith = async (journal: string): Promise<readonly [Child, Child]> => {
      const adapter = await start('adapter-process.ts', [address, journal])
      return [adapter, await start('load-process.ts', [adapter.ready['port'] ?? 0, CLIENTS, ROUND_MS])]
    }
    const [plain, kept] = [await sideWith('none'), await sideWith(url)]
    const readState = async () => {
      const { rows } = await client.query<{ name: string; value: number }>(
        `select 'wal' as name, (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 as value
         union all select relname, pg_total_relation_size(oid)::float8 from pg_class
           where relkind = 'r' and relnamespace = 'public'::regnamespace
         union all select 'commits', sum(commits)::float8 from journal_commits`,
      )
      return new Map(rows.map(({ name, value }) => [name, value]))
    }
    const run = async ([adapter, load]: readonly [Child, Child]) => {
      const [before, state, server] = [await adapter.ask('cpu'), await readState(), serverMs()]
      const { marks = 0, ms = 1 } = await load.ask('run')
      const [after, next, serverAfter] = [await adapter.ask('cpu'), await readState(), serverMs()]
      const grown = (isCounted: (name: string) => boolean): number =>
        [...next].reduce(
          (sum, [name, value]) => sum + (isCounted(name) ? value - (state.get(name) ?? 0) : 0),
          0,
        )
      const of = (name: 'cpuMs' | 'statements'): number => ((after[name] ?? 0) - (before[name] ?? 0)) / marks
      return {
        adapterMicros: of('cpuMs') * 1_000,
        statements: of('statements'),
        postgresMicros: ((serverAfter - server) * 1_000) / marks,
        walBytes: grown((name) => name === 'wal') / marks,
        dayBytes: grown((name) => DAY_TABLES.includes(name)) / marks,
        commits: grown((name) => name === 'commits') / marks,
        marksPerSecond: (marks * 1_000) / ms,
      }
    }
    /** Returns the bytes of a record in `KEPT_TABLES`, without old row versions, whose space PostgreSQL reuses. */
    const readKeptBytes = async (): Promise<number> => {
      for (const table of KEPT_TABLES) await client.query(`vacuum full ${table}`)
      const state = await readState()
      const { rows } = await client.query<{ n: number }>('select count(*)::float8 as n from journal_records')
      return KEPT_TABLES.reduce((sum, table) => sum + (state.get(table) ?? 0), 0) / (rows[0]?.n ?? 1)
    }
    const serverMs = (): number => processorMsOf(postgres.server?.pid() ?? 0)
    const measured: Omit<Cost, 'keptBytes'>[] = []
    // The first round does not count, because V8 still compiles.
    for (let round = 0; round <= (rounds ?? 5); round += 1) {
      const { adapterMicros: withoutJournalMicros } = await run(plain)
      const cost = await run(kept)
      if (round > 0) measured.push({ ...cost, withoutJournalMicros })
    }
    const medianOf = (name: keyof (typeof measured)[number]): number =>
      median(measured.map((cost) => cost[name]))
    // Other programs can only increase the processor time of a mark, so the smallest value is the most exact.
    const leastOf = (name: keyof (typeof measured)[number]): number =>
      Math.min(...measured.map((cost) => cost[name]))
    return {
      adapterMicros: leastOf('adapterMicros'),
      withoutJournalMicros: leastOf('withoutJournalMicros'),
      postgresMicros: leastOf('postgresMicros'),
      walBytes: medianOf('walBytes'),
      dayBytes: medianOf('dayBytes'),
      keptBytes: await readKeptBytes(),
      statements: medianOf('statements'),
      commits: medianOf('commits'),
      marksPerSecond: medianOf('marksPerSecond'),
    }
  } finally {
    await client.end()
    for (const child of children.reverse()) await child.stop()
    await postgres.close()
  }
}

/** Returns the processor time of a server and of all processes that it has started, including ended processes, in ms (Linux). */
function processorMsOf(server: number): number {
  const ticks = readdirSync('/proc').flatMap((id) => {
    if (!/^\d+$/.test(id)) return []
    try {
      const stat = readFileSync(`/proc/${id}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const isServer = Number(id) === server
      if (!isServer && Number(fields[1]) !== server) return []
      return fields.slice(11, isServer ? 15 : 13).map(Number)
    } catch {
      // The process has ended since the list was read.
      return []
    }
  })
  return ticks.reduce((sum, one) => sum + one, 0) * 10
}

type Line = readonly [what: string, value: string, how: string]

const shown = (value: number, digits = 0): string =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
const gigabytes = (bytes: number): string => `${shown(bytes / 1e9, bytes < 1e11 ? 1 : 0)} GB`

function print(title: string, lines: readonly Line[]): void {
  console.log(`\n### ${title}\n\n| quantity | value | how |\n|---|---|---|`)
  for (const line of lines) console.log(`| ${line.join(' | ')} |`)
}

const cost = await measure()
const marksPerSecond = rate ?? 0
const marksPerDay = (schools ?? 0) * (pupils ?? 0) * SESSIONS_A_DAY
/** The time of one mark under the lock that all instances share. The lock limits a journal to one processor core of the server. */
const lockMicros = cost.postgresMicros + cost.commits * FLUSH_MS * 1e3
const journalCeiling = (1e6 / lockMicros) * BUSY
const journals = Math.ceil(marksPerSecond / journalCeiling)
const cores = (marksPerSecond * cost.adapterMicros) / 1e6 / BUSY
const instances = Math.ceil(cores) + journals
const keptBytes = marksPerDay * cost.keptBytes * KEEP_DAYS

print(`Measured: ${CLIENTS} clients, batches of ${RECORDS}, one instance`, [
  [
    'adapter, no journal',
    `${shown(cost.withoutJournalMicros)} us per mark`,
    'processor time of the best round',
  ],
  ['adapter, PostgreSQL', `${shown(cost.adapterMicros)} us per mark`, 'processor time'],
  ['PostgreSQL', `${shown(cost.postgresMicros)} us per mark`, 'processor time of all its processes'],
  ['statements', `${shown(cost.statements, 2)} per mark`, 'sent by the adapter'],
  ['commits', `${shown(cost.commits, 3)} per mark`, 'one for each group of batches that wait together'],
  ['log of PostgreSQL', `${shown(cost.walBytes)} bytes per mark`, 'WAL'],
  ['requests and replies', `${shown(cost.dayBytes)} bytes per mark`, 'tables and indexes, for 24 h'],
  ['outcomes', `${shown(cost.keptBytes)} bytes per mark`, `tables and indexes, for ${KEEP_DAYS} days`],
  [
    'this machine',
    `${shown(cost.marksPerSecond)} marks/s`,
    'all processes on its cores, beside other programs',
  ],
])
print(`Computed: ${shown(schools ?? 0)} schools, ${shown(marksPerSecond)} marks/s at nine o'clock`, [
  [
    'marks per day',
    `${shown(marksPerDay / 1e6, 1)} million`,
    `${pupils} pupils per school, ${SESSIONS_A_DAY} sessions`,
  ],
  [
    'time at that rate',
    `${shown(marksPerDay / SESSIONS_A_DAY / marksPerSecond / 60)} min`,
    'one session of all schools',
  ],
  ['adapter', `${shown(Math.ceil(cores))} cores`, `${BUSY * 100} % busy, without TLS`],
  [
    'one journal',
    `${shown(journalCeiling)} marks/s`,
    `one core of PostgreSQL, and flushes of ${FLUSH_MS} ms, ${BUSY * 100} % busy`,
  ],
  ['journals', `${journals}`, 'each with its own partners'],
  ['instances', `${instances}`, 'one for each core of the adapter, and one more for each journal'],
  ['connections to PostgreSQL', `${8 * Math.ceil(instances / journals)}`, 'per journal, 8 for each instance'],
  ['commits', `${shown(marksPerSecond * cost.commits)}/s`, 'fewer if more batches wait together'],
  ['log of PostgreSQL', `${shown((marksPerSecond * cost.walBytes) / 1e6)} MB/s`, "in total, at nine o'clock"],
  ['requests and replies', gigabytes(marksPerDay * cost.dayBytes), 'in total, for 24 h'],
  ['outcomes', gigabytes(keptBytes), `in total, for ${KEEP_DAYS} days`],
  [
    'calls in progress',
    shown((marksPerSecond * V3_MS) / 1e3),
    `single posts, if V3 takes ${V3_MS} ms for each`,
  ],
  [
    'subscription keys, single posts',
    shown(marksPerSecond / CALLS_PER_KEY),
    `${CALLS_PER_KEY} calls/s for each key`,
  ],
  [
    'subscription keys, `$batch`',
    shown(marksPerSecond / CALLS_PER_KEY / RECORDS),
    `one register (${RECORDS} records) per call, at most ${RECORDS_PER_CALL}`,
  ],
])
