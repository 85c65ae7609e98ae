import { expect, onTestFinished } from 'vitest'
import { Pool } from 'undici'
import supertest from 'supertest'
import { createSandbox } from '../../src/sandbox/index.ts'
import type { SandboxOptions } from '../../src/sandbox/index.ts'
import { atEndOfFile, type OnEnd } from '../support/end-of-file.ts'

/** The time of the tests: a Wednesday in term, after the fixed weeks (2 to 15 March 2026), whose marks never change. */
export const testNow = '2026-06-10T10:00:00Z'

/** The credentials that have all permissions. */
export const sandboxHeaders = {
  'Ocp-Apim-Subscription-Key': 'sandbox',
  Authorization: 'Bearer sandbox',
}

/** The ids and the range of days that `/_sandbox/samples` returns. */
export interface Samples {
  readonly learners: string[]
  readonly events: string[]
  readonly codes: { readonly id: string; readonly code: string }[]
  readonly from: string
  readonly to: string
}

interface Sent {
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer | null
}

/** Creates a client of one base URL with credentials that have all permissions. */
function clientOf(pool: Pool) {
  const request = async (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    { headers = {}, body = null }: Sent = {},
  ) => {
    const all: Record<string, string> = { ...sandboxHeaders, ...headers }
    // Tests write queries with spaces, which a request target must not contain.
    const reply = await pool.request({ method, path: path.replaceAll(' ', '%20'), headers: all, body })
    return { status: reply.statusCode, headers: reply.headers, text: await reply.body.text() }
  }
  const json = async (
    ...parameters: Parameters<typeof request>
  ): Promise<{ status: number; body: unknown }> => {
    const { status, text } = await request(...parameters)
    return { status, body: text === '' ? undefined : JSON.parse(text) }
  }
  /** Returns the rows of a collection, which must exist. */
  const rows = async (path: string): Promise<Record<string, unknown>[]> => {
    const { status, body } = await json('GET', path)
    expect([path, status]).toEqual([path, 200])
    return (body as { value: Record<string, unknown>[] }).value
  }
  /** Sets the value that `/_sandbox/<name>` controls. */
  const put = (name: string, body: unknown) => json('PUT', `/_sandbox/${name}`, jsonOf(body))
  const effects = async (): Promise<unknown[]> => (await json('GET', '/_sandbox/effects')).body as unknown[]
  const samples = async () => (await json('GET', '/_sandbox/samples')).body as Samples
  return { request, json, rows, put, effects, samples }
}

export type Client = ReturnType<typeof clientOf>

/**
 * Starts a sandbox on a free port and creates clients of it: `client` sends no credentials, and `v2` calls the port of V2.
 * `onEnd` decides whether the sandbox closes at the end of the test (the default) or of the file.
 */
export async function startSandbox(options: SandboxOptions = {}, onEnd: OnEnd = onTestFinished) {
  const sandbox = createSandbox({ now: testNow, ...options })
  const { url, port, v2Url } = await sandbox.listen()
  const pool = new Pool(url, { connections: 4 })
  const v2Pool = new Pool(v2Url, { connections: 4 })
  onEnd(async () => {
    await Promise.all([pool.destroy(), v2Pool.destroy()])
    await sandbox.close()
  })
  return { sandbox, url, v2Url, port, pool, client: supertest(url), ...clientOf(pool), v2: clientOf(v2Pool) }
}

/** Returns a function that gives the tests of a file the same sandbox, each time in its seeded state, without faults, at `testNow`. */
export function oneSandbox(options: SandboxOptions = {}) {
  const onEnd = atEndOfFile()
  let started: ReturnType<typeof startSandbox> | undefined
  return async () => {
    if (started !== undefined) {
      const { json, put } = await started
      await json('POST', '/_sandbox/reset')
      await put('clock', { now: testNow })
    }
    return (started ??= startSandbox(options, onEnd))
  }
}

export const jsonBody = { 'Content-Type': 'application/json' }

/** The first ids of the default seed, which are the same on every machine and every day. */
export const fixed = {
  learner: '41dba12f-bcce-470b-8ce4-b260ffb62649',
  otherLearner: '809661f9-0a62-439a-a62d-9891bb705550',
  /** The morning session of Monday 2 March 2026. */
  morning: '29cd4133-b991-43c6-9913-1e96862672ec',
  afternoon: '9c651743-08fc-4306-8fcf-172aacef3d6c',
  /** The attendance code `/`. */
  present: 'ac00c159-62ce-44b8-ace6-c75caf7505e6',
  zero: '00000000-0000-0000-0000-000000000000',
  /** An id that does not exist in the sandbox. */
  unknown: '11111111-1111-4111-8111-111111111111',
}

/** Matches any text in an expected value. */
export const anyText: unknown = expect.any(String)

/** Matches an array that contains at least these items. */
export const arrayWith = (...items: unknown[]): unknown => expect.arrayContaining(items)

/** Builds the options of a request with a JSON body. */
export const jsonOf = (body: unknown) => ({ headers: jsonBody, body: JSON.stringify(body) })

/** The path of the records on each interface. */
export const recordsOf = {
  V2: '/V2/Attendance/AttendanceRecords',
  V3: '/Attendance/V3/AttendanceRecords',
} as const

/** A filter for the mark of the first learner on the first morning of the fixed weeks, by interface. */
export const ownMark = {
  V2: encodeURIComponent(`Learner eq ${fixed.learner} and AttendableEvent eq ${fixed.morning}`),
  V3: encodeURIComponent(`Attendee/ExternalID eq ${fixed.learner} and Event/ExternalID eq ${fixed.morning}`),
} as const

/** Builds a mark of the first learner on the first morning of the fixed weeks, in the flat form of V2. */
export const flatMark = (members: object = {}) => ({
  ...{ Present: true, Absent: false, Learner: fixed.learner },
  ...{ AttendableEvent: fixed.morning, SchoolAttendanceCode: fixed.present, ...members },
})
export const nestedMark = (members: object = {}) => ({
  ...{ Attendee: { ExternalID: fixed.learner }, Event: { ExternalID: fixed.morning } },
  ...{ AttendanceCode: { ExternalID: fixed.present }, ...members },
})

/** Builds a mark for the learner with this number in the first session, in the form of V2. */
export const sampleMark = ({ learners, events, codes }: Samples, learner: number, members: object = {}) => ({
  ...{ Present: true, Absent: false, Learner: learners[learner], AttendableEvent: events[0] },
  ...{ SchoolAttendanceCode: codes[0]?.id, MinutesLate: null, ...members },
})
