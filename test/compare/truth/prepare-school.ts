import { request } from 'undici'

import { createSandbox } from '../../../src/sandbox/index.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { batchOf } from '../../support/batch-request.ts'
import { type FlatMark, type ListedDifference, startFaceProxy } from './differ-faces.ts'

const sandboxHeaders = { 'Ocp-Apim-Subscription-Key': 'sandbox', Authorization: 'Bearer sandbox' }

/** The first and the last day of the marks with comments. Both exist at every scale. */
export const firstDay = '2026-02-23'
export const lastDay = '2026-05-22'

/** A school with a V2 and a V3 interface. Some of its marks have comments and minutes. */
export interface PreparedSchool {
  readonly v2Url: string
  readonly v3Url: string
  /** The learners in the order of the register. */
  readonly learners: readonly string[]
  /** The days of the marks that were written again, by `learner event`. */
  readonly written: ReadonlyMap<string, string>
  /** All marks from `firstDay` to `lastDay`, as V2 shows them. */
  readonly marks: readonly FlatMark[]
  /** Makes one interface show some marks differently, and the other interface show all marks as stored. */
  readonly show: (face: ListedDifference['face'], differences: readonly ListedDifference[]) => void
  /** Makes reads of both interfaces fail at random, or ends the failures. */
  readonly fail: (isFailing: boolean) => Promise<void>
  readonly close: () => Promise<void>
}

/** Starts a sandbox with a separate V2 port and writes `comments` marks again. */
export async function prepareSchool(scale: 'class' | 'school', comments: number): Promise<PreparedSchool> {
  // The pages of a class are short, so that a run over a class reads about as many pages as a run over a school.
  const pageSize = scale === 'class' ? 100 : 1_000
  const sandbox = createSandbox({ scale, pageSize, now: '2026-06-10T10:00:00Z', v2Port: 0 })
  const { url: v3Url, v2Url } = await sandbox.listen()
  const call = async (method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, body?: unknown) => {
    const isJson = typeof body === 'object'
    const reply = await request(url, {
      method,
      headers: { ...sandboxHeaders, ...(isJson ? { 'Content-Type': 'application/json' } : {}) },
      ...(isJson ? { body: JSON.stringify(body) } : {}),
    })
    return { status: reply.statusCode, text: await reply.body.text() }
  }
  const get = async (path: string): Promise<unknown> =>
    JSON.parse((await call('GET', `${v2Url}${path}`)).text)
  const samples = (await get('/_sandbox/samples')) as { learners: string[] }
  const written = new Map<string, string>()
  const random = createRandom(1, 'comments')
  const readDay = async (day: string): Promise<readonly FlatMark[]> => {
    const filter = `AttendableEventStart ge ${day}T00:00:00Z and AttendableEventStart lt ${day}T23:59:59Z`
    const marks: FlatMark[] = []
    let path: string | undefined = `/V2/Attendance/AttendanceRecords?$filter=${encodeURIComponent(filter)}`
    while (path !== undefined) {
      const page = (await get(path)) as { value: FlatMark[]; '@odata.nextLink'?: string }
      marks.push(...page.value)
      path = page['@odata.nextLink']?.slice(v2Url.length)
    }
    return marks
  }
  const days = daysOf(firstDay, lastDay)
  for (const day of days) {
    const marks = await readDay(day)
    if (marks.length === 0) continue
    const share = comments / (days.length * marks.length) / 0.6
    // All marks of a learner and day are chosen or none, because a comparison may choose which mark of a swapped day counts as moved.
    const learners = new Set(
      [...new Set(marks.map(({ Learner }) => Learner))].filter(() => random.chance(share)),
    )
    const chosen = marks.filter(({ Learner }) => learners.has(Learner))
    if (chosen.length === 0) continue
    const records = chosen.map(
      ({ Learner, AttendableEvent, SchoolAttendanceCode, Present, Absent }, index) => ({
        ...{ Learner, AttendableEvent, SchoolAttendanceCode, Present, Absent },
        MinutesLate: random.chance(0.5) ? random.below(70) : null,
        Comment: commentOf(index, random.below(6)),
      }),
    )
    const batch = batchOf(records)
    const reply = await request(`${v2Url}/V2/Attendance/$batch`, {
      method: 'POST',
      headers: { ...sandboxHeaders, ...batch.headers },
      body: batch.body,
    })
    await reply.body.dump()
    for (const { Learner, AttendableEvent } of chosen) written.set(`${Learner} ${AttendableEvent}`, day)
  }
  const marks: FlatMark[] = []
  for (const day of days) marks.push(...(await readDay(day)))
  const faces = { V2: await startFaceProxy('V2', v2Url), V3: await startFaceProxy('V3', v3Url) }
  return {
    v2Url: faces.V2.url,
    v3Url: faces.V3.url,
    learners: samples.learners,
    written,
    marks,
    show: (face, differences) => {
      for (const proxy of Object.values(faces)) proxy.show([], [])
      faces[face].show(differences, marks)
    },
    fail: async (isFailing) => {
      for (const url of [v2Url, v3Url])
        await call(isFailing ? 'PUT' : 'DELETE', `${url}/_sandbox/faults`, isFailing ? faults : undefined)
    },
    close: async () => {
      for (const proxy of Object.values(faces)) proxy.close()
      await sandbox.close()
    },
  }
}

/** The injected faults. Each fault affects one read, and no two faults affect the same read. */
const faults = [
  { kind: 'rateLimit', retryAfterSeconds: 0, skip: 1, count: 1 },
  { kind: 'status', status: 503, headers: { 'Retry-After': '0' }, skip: 3, count: 1 },
  { kind: 'reset', skip: 5, count: 1 },
  { kind: 'truncate', bytes: 300, skip: 7, count: 1 },
].map((fault) => ({ ...fault, method: 'GET', path: 'AttendanceRecords' }))

/**
 * Returns a comment. The comments have different lengths. Some have spaces around them, and some have characters of two to four bytes in
 * UTF-8.
 */
function commentOf(index: number, form: number): string {
  const words = [
    'Bus late',
    'Left early for the dentist',
    'Añade: 5 min — café',
    '🚌 broke down',
    'Überfüllt',
    'Form X7 read',
  ]
  const text = `${words[form] ?? ''} ${index}`
  if (index % 5 === 0) return `  ${text} `
  return index % 7 === 0 ? `${text} `.repeat(12) + 'end' : text
}

/** Returns all days from the first to the last. */
export function daysOf(from: string, to: string): string[] {
  const days: string[] = []
  for (let ms = Date.parse(from); ms <= Date.parse(to); ms += 86_400_000)
    days.push(new Date(ms).toISOString().slice(0, 10))
  return days
}
