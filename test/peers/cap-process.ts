import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'

import express from 'express'

// Runs SAP CAP as V3, with its own parser of URLs and bodies, $batch, paging, $metadata and errors. CAP stores no nested objects in a
// database, so the handlers below convert between the nested record of the service and the flat row of the table. The argument is the
// database file.

const [, , database = ':memory:'] = process.argv
const folder = fileURLToPath(new URL('./cap/', import.meta.url))

type Row = Readonly<Record<string, unknown>>
interface Query {
  readonly SELECT: Record<'where' | 'orderBy' | 'limit' | 'one' | 'count', unknown> & {
    readonly from: { readonly ref?: readonly { readonly where?: unknown }[] }
  }
}
interface Request {
  readonly data: Row
  readonly query: Query
  error(fault: object): void
}
interface Service {
  prepend(act: () => void): void
  before(event: string, entity: string, handle: (request: Request) => void): void
  on(event: string, entity: string, handle: (request: Request) => Promise<unknown>): void
}
/** The members of `@sap/cds` that this program uses. The package has no types of its own. */
interface Cds {
  root: string
  model: unknown
  db: unknown
  app: unknown
  readonly services: { readonly AttendanceV3: Service }
  readonly compile: { readonly for: { nodejs(model: unknown): unknown } }
  readonly connect: { to(name: string): Promise<unknown> }
  readonly utils: { uuid(): string }
  readonly ql: {
    readonly SELECT: { from(entity: string): Query }
    readonly INSERT: { into(entity: string): { entries(row: Row): unknown } }
  }
  load(path: string): Promise<unknown>
  deploy(model: unknown): { to(name: string): Promise<unknown> }
  serve(name: string): { from(model: unknown): { in(app: unknown): Promise<unknown> } }
  run(query: unknown): Promise<Row[]>
}

process.env['CDS_CONFIG'] = JSON.stringify({
  // Makes CAP return names with underscores as nested objects.
  odata: { flavor: 'x4' },
  requires: {
    auth: { kind: 'dummy' },
    db: { kind: 'sqlite', impl: '@cap-js/sqlite', credentials: { url: database } },
  },
  log: { levels: { odata: 'silent', deploy: 'silent', cds: 'silent' } },
})
// CAP resolves its packages from the working directory.
process.chdir(folder)
const loaded: unknown = createRequire(`${folder}package.json`)('@sap/cds')
const cds = loaded as Cds
cds.root = folder

const isObject = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function toRow(record: Row): Row {
  const members = Object.entries(record).flatMap(([name, value]) =>
    isObject(value)
      ? Object.entries(value).map(([inner, own]) => [`${name}_${inner}`, own])
      : [[name, value]],
  )
  return Object.fromEntries(members) as Row
}

function toRecord(row: Row): Row {
  const record: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(row)) {
    const [outer = '', inner] = name.split('_')
    if (inner === undefined) record[outer] = value
    else record[outer] = { ...(record[outer] as object | undefined), [inner]: value }
  }
  return record
}

/** Rewrites the references in a CAP expression to the columns of the table. */
function toColumns(expression: unknown): unknown {
  if (Array.isArray(expression)) return expression.map(toColumns)
  if (!isObject(expression)) return expression
  const members = Object.entries(expression).map(([name, value]) => [
    name,
    name === 'ref' ? [(value as string[]).join('_')] : toColumns(value),
  ])
  return Object.fromEntries(members) as Row
}

/** Returns true for an id that begins with `ffffffff-`, with which tests refer to an event or a code that does not exist. */
const isUnknown = (reference: unknown): boolean =>
  isObject(reference) && String(reference['ExternalID']).startsWith('ffffffff-')

async function readMarks({ query: { SELECT } }: Request): Promise<unknown> {
  const { from, where, orderBy, limit, one, count } = SELECT
  const conditions = [from.ref?.[0]?.where, where].filter((own) => own !== undefined)
  const xprs = conditions.map((xpr) => ({ xpr }))
  const query = cds.ql.SELECT.from('Marks')
  Object.assign(query.SELECT, {
    ...(xprs.length === 0 ? {} : { where: toColumns(xprs.length === 1 ? xprs : [xprs[0], 'and', xprs[1]]) }),
    ...(orderBy === undefined ? {} : { orderBy: toColumns(orderBy) }),
    ...(limit === undefined ? {} : { limit }),
    ...(count === undefined ? {} : { count }),
  })
  const rows = await cds.run(query)
  const records = rows.map(toRecord)
  if (one === true) return records[0]
  return Object.assign(records, { $count: (rows as { $count?: number }).$count })
}

async function writeMark(request: Request): Promise<Row | undefined> {
  const own = { ...request.data, ExternalID: cds.utils.uuid() }
  await cds.run(cds.ql.INSERT.into('Marks').entries(toRow(own)))
  // Like the handler of CAP, this handler reads the written row again and returns null for missing values.
  const query = cds.ql.SELECT.from('Marks')
  Object.assign(query.SELECT, { where: [{ ref: ['ExternalID'] }, '=', { val: own.ExternalID }] })
  const [row] = await cds.run(query)
  return row && toRecord(row)
}

const model = await cds.load(`${folder}attendance.cds`)
cds.model = cds.compile.for.nodejs(model)
cds.db = await cds.connect.to('db')
await cds.deploy(model).to('db')
const app = express()
cds.app = app
await cds.serve('all').from(cds.model).in(app)
const { AttendanceV3 } = cds.services
AttendanceV3.prepend(() => {
  AttendanceV3.before('CREATE', 'AttendanceRecords', (request) => {
    const { Event, AttendanceCode } = request.data
    if (isUnknown(Event))
      request.error({ status: 400, code: 'ATT_VAL_2', message: 'No event', target: 'Event' })
    if (isUnknown(AttendanceCode))
      request.error({ status: 400, code: 'ATT_VAL_3', message: 'No code', target: 'AttendanceCode' })
  })
  AttendanceV3.on('CREATE', 'AttendanceRecords', writeMark)
  AttendanceV3.on('READ', 'AttendanceRecords', readMarks)
})
const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
console.log(`ready ${(server.address() as AddressInfo).port}`)
