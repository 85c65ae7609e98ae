import { DatabaseSync } from 'node:sqlite'

import { toRecordEntity } from '../src/sandbox/attendance/record.ts'
import { augmentedRows } from '../src/sandbox/attendance/rows.ts'
import { readOptions } from '../src/sandbox/options.ts'
import { openSchool } from '../src/sandbox/school.ts'
import { type Numbers, serveCommands } from './child.ts'

// Measures a read of a class without OData and HTTP. Arguments: the database file, and the start and end of the range in ms.

const [, , db = '', from = '', to = ''] = process.argv
const school = openSchool(
  readOptions({ scale: 'school', db }),
  () => Date.parse('2026-06-10T10:00:00Z'),
  () => undefined,
)
const bounds = { from: Number(from), to: Number(to) - 1 }
const learners = school.roster.entries.slice(0, 30)
const sessions = school.calendar.sessions.filter(({ start }) => start >= bounds.from && start <= bounds.to)
// The statement of the sandbox's mark store, on a separate connection.
const statement = new DatabaseSync(db, { readOnly: true }).prepare(
  `SELECT learner, session, copy, code, flags, minutes_late, comment, recorded_on, actor, process, external_id, seq
   FROM mark WHERE learner = ? AND session BETWEEN ? AND ? ORDER BY session, copy`,
)

/** Reads the stored marks and converts them to JSON. */
function sql(): Numbers {
  const startedMs = performance.now()
  const [first, last] = [sessions[0]?.number ?? 0, sessions.at(-1)?.number ?? 0]
  const rows = learners.flatMap(({ number }) => statement.all(number, first, last))
  const bytes = Buffer.byteLength(JSON.stringify(rows))
  return { rows: rows.length, bytes, ms: performance.now() - startedMs }
}

/** Builds the rows of V3's reply, including sessions without a mark, and converts them to JSON. */
function augmented(): Numbers {
  const startedMs = performance.now()
  const ids = new Set(learners.map(({ externalId }) => externalId))
  const rows = [...augmentedRows(school, { bounds: { ...bounds, learners: ids } })]
  const entities = rows.map(({ view }) => toRecordEntity(view))
  const bytes = Buffer.byteLength(JSON.stringify(entities))
  return { rows: rows.length, bytes, ms: performance.now() - startedMs }
}

serveCommands({}, { sql, augmented })
