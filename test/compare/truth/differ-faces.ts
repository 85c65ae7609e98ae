import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { request } from 'undici'

import { createRandom } from '../../../src/sandbox/random.ts'

export type FlatMark = Readonly<Record<string, unknown>> & {
  readonly Learner: string
  readonly AttendableEvent: string
  readonly AttendableEventStart: string
  readonly SchoolAttendanceCode: string
  readonly Present: boolean
  readonly Absent: boolean
}

/** A difference that a comparison must find in one mark. */
export interface ListedDifference {
  readonly mark: FlatMark
  /** The interface that shows the mark differently. */
  readonly face: 'V2' | 'V3'
  readonly kind: DrawnKind
  /** The changed fields of the flat record, as stored and as shown. `shown` is absent if the interface omits the member. */
  readonly fields: readonly { readonly path: string; readonly stored: unknown; readonly shown?: unknown }[]
}

type Fields = ListedDifference['fields']

const guids = ['ExternalID', 'RecordedBy', 'Learner', 'AttendableEvent', 'SchoolAttendanceCode']
const times = ['RecordedOn', 'AttendableEventStart']
const nullable = ['ChangeProcessName', 'MinutesLate', 'Comment']
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const points = (value: unknown): string[] => Array.from(textOf(value))
const later = (value: unknown): string =>
  new Date(Date.parse(textOf(value)) + 3_600_000).toISOString().replace('.000Z', 'Z')
const otherText = (value: unknown): string => ['#', ...points(value).slice(1)].join('')

type Change = (mark: FlatMark) => Fields

const to =
  (paths: readonly string[], change: (value: unknown, mark: FlatMark) => unknown): Change =>
  (mark) =>
    paths.flatMap((path) => {
      const [stored, shown] = [mark[path], change(mark[path], mark)]
      return shown === stored ? [] : [{ path, stored, shown }]
    })
const comment = (change: (text: unknown) => string): Change =>
  to(['Comment'], (value) => (points(value).length < 2 ? value : change(value)))

/** The kinds of differences in the fields of a mark. A kind does not fit a mark that the kind leaves unchanged. */
const fieldChanges = {
  recordedOn: to(['RecordedOn'], later),
  start: to(['AttendableEventStart'], later),
  commentCut: comment((text) => points(text).slice(0, Math.ceil(points(text).length / 2)).join('')), // prettier-ignore
  commentTrimmed: comment((text) => textOf(text).trim()),
  commentOther: comment(otherText),
  code: to(['SchoolAttendanceCode'], () => randomUUID()),
  present: to(['Present'], (value) => value !== true),
  absent: to(['Absent'], (value) => value !== true),
  minutesNull: to(['MinutesLate'], () => null),
  minutesZero: to(['MinutesLate'], () => 0),
  minutesText: to(['MinutesLate'], (value) => (typeof value === 'number' ? String(value) : value)),
  process: to(['ChangeProcessName'], otherText),
  recordedBy: to(['RecordedBy'], () => randomUUID()),
  id: to(['ExternalID'], () => randomUUID()),
  guidCase: to(guids, (value) => textOf(value).toUpperCase()),
  timeOffset: to(times, (value) => later(value).replace('Z', '+01:00')),
  timeFraction: to(times, (value) => new Date(textOf(value)).toISOString().replace('Z', '0000Z')),
  nullMissing: to(nullable, (value) => value ?? undefined),
} satisfies Readonly<Record<string, Change>>

type FieldKind = keyof typeof fieldChanges

/** The kinds of differences of a mark: in its fields, or in its rows and their order. */
export type DrawnKind = FieldKind | 'missing' | 'doubled' | 'order' | 'history'
export const drawnKinds: readonly DrawnKind[] = [
  ...(Object.keys(fieldChanges) as FieldKind[]),
  ...(['missing', 'doubled', 'order', 'history'] as const),
]

export const keyOf = ({ Learner, AttendableEvent }: FlatMark): string => `${Learner} ${AttendableEvent}`
export const dayOf = ({ AttendableEventStart }: FlatMark): string => AttendableEventStart.slice(0, 10)
const learnersDay = (mark: FlatMark): string => `${mark.Learner} ${dayOf(mark)}`

/** Returns the difference of a mark, or `undefined` if the kind does not change the mark. `ofDay` are the marks of its learner and day. */
export function differenceOf(
  mark: FlatMark,
  kind: DrawnKind,
  face: ListedDifference['face'],
  ofDay: readonly FlatMark[] = [],
): ListedDifference | undefined {
  if (kind in fieldChanges) {
    const fields = fieldChanges[kind as FieldKind](mark)
    return fields.length === 0 ? undefined : { mark, face, kind, fields }
  }
  // The kind `order` swaps the two marks of a day, and only the morning mark is listed for both.
  const isFirst = ofDay.length === 2 && ofDay.every((one) => one.AttendableEventStart >= mark.AttendableEventStart) // prettier-ignore
  return kind === 'order' && !isFirst ? undefined : { mark, face, kind, fields: [] }
}

/** Draws `count` of the marks, at most one mark per learner and day. The kinds take turns, and a kind without a fitting mark is skipped. */
export function drawDifferences(
  marks: readonly FlatMark[],
  { face, seed, count, kinds }: { face: ListedDifference['face']; seed: number; count: number; kinds: readonly DrawnKind[] }, // prettier-ignore
): ListedDifference[] {
  const random = createRandom(seed, `differences ${face}`)
  const pool = marks
    .map((mark) => ({ mark, place: random.next() }))
    .sort((one, other) => one.place - other.place)
    .map(({ mark }) => mark)
  const days = Map.groupBy(pool, learnersDay)
  const drawn: ListedDifference[] = []
  for (let turn = 0; turn < count; turn += 1) {
    const kind = kinds[turn % kinds.length]
    if (kind === undefined) break
    for (const mark of pool) {
      const ofDay = days.get(learnersDay(mark))
      const found = ofDay === undefined ? undefined : differenceOf(mark, kind, face, ofDay)
      if (found === undefined) continue
      days.delete(learnersDay(mark))
      drawn.push(found)
      break
    }
  }
  return drawn
}

/** The members of a V3 record that hold the fields of a flat record. */
const nested: Readonly<Record<string, readonly [outer: string, inner: string]>> = {
  RecordedBy: ['RecordedBy', 'ExternalID'],
  Learner: ['Attendee', 'ExternalID'],
  AttendableEvent: ['Event', 'ExternalID'],
  SchoolAttendanceCode: ['AttendanceCode', 'ExternalID'],
  MinutesLate: ['Qualifier', 'MinutesLate'],
  Comment: ['Qualifier', 'Comment'],
}

type Row = Record<string, unknown>
const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null

/** Returns the object that holds a field of a row, and the name of the field there. */
function placeOf(row: Row, face: ListedDifference['face'], path: string): readonly [Row, string] {
  const place = face === 'V3' ? nested[path] : undefined
  const owner = place === undefined ? undefined : row[place[0]]
  return place !== undefined && isRow(owner) ? [owner, place[1]] : [row, path]
}

function write(row: Row, face: ListedDifference['face'], path: string, value: unknown): void {
  const [owner, name] = placeOf(row, face, path)
  if (value === undefined) Reflect.deleteProperty(owner, name)
  else owner[name] = value
}

/** A proxy in front of an interface of the sandbox. Its pages show some marks differently. */
export interface FaceProxy {
  readonly url: string
  /** Sets the differences that the pages show. `marks` are all stored marks. */
  readonly show: (differences: readonly ListedDifference[], marks: readonly FlatMark[]) => void
  readonly close: () => void
}

export async function startFaceProxy(face: ListedDifference['face'], target: string): Promise<FaceProxy> {
  let differences: ReadonlyMap<string, readonly ListedDifference[]> = new Map()
  let exchanged: ReadonlyMap<string, FlatMark> = new Map()

  /** Returns the rows that replace a row. */
  const change = (row: Row): Row[] => {
    const [learner, event] = ['Learner', 'AttendableEvent'].map((path) => {
      const [owner, name] = placeOf(row, face, path)
      return textOf(owner[name])
    })
    const key = `${learner} ${event}`
    for (const [path, value] of Object.entries(exchanged.get(key) ?? {}))
      if (face === 'V2' || path !== 'AttendanceHistorys') write(row, face, path, value)
    const found = differences.get(key) ?? []
    for (const { path, shown } of found.flatMap(({ fields }) => fields)) write(row, face, path, shown)
    const has = (kind: DrawnKind): boolean => found.some((one) => one.kind === kind)
    if (has('missing')) return []
    if (has('history') && face === 'V2') row['AttendanceHistorys'] = [{ ...row }]
    return has('doubled') ? [row, row] : [row]
  }

  const server = createServer((incoming, outgoing) => {
    const forward = async (): Promise<void> => {
      const { url = '', headers } = incoming
      // The host header of the client is forwarded, since next links begin with it.
      const reply = await request(target + url, { headers })
      const text = await reply.body.text()
      const others = Object.entries(reply.headers).filter(([name]) => name !== 'content-length')
      outgoing.writeHead(reply.statusCode, Object.fromEntries(others))
      if (reply.statusCode !== 200 || !/AttendanceRecords\?/.test(url)) {
        outgoing.end(text)
        return
      }
      const page = JSON.parse(text) as Row & { value: Row[] }
      outgoing.end(JSON.stringify({ ...page, value: page.value.flatMap(change) }))
    }
    // If the reply of the sandbox breaks off, the connection to the client breaks too.
    forward().catch(() => incoming.socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    show: (shown, marks) => {
      differences = Map.groupBy(shown, ({ mark }) => keyOf(mark))
      const mornings = new Set(
        shown.flatMap(({ kind, mark }) => (kind === 'order' ? [learnersDay(mark)] : [])),
      )
      const halves = Map.groupBy(
        marks.filter((mark) => mornings.has(learnersDay(mark))),
        learnersDay,
      )
      exchanged = new Map(
        [...halves.values()].flatMap(([one, other]) =>
          one === undefined || other === undefined
            ? []
            : [
                [keyOf(one), other],
                [keyOf(other), one],
              ],
        ),
      )
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
