import { setTimeout as delay } from 'node:timers/promises'

import { request } from 'undici'
import * as z from 'zod'

interface TrafficOptions {
  readonly adapter: string
  /** The address of the sandbox, which lists the learners, events and codes to use. */
  readonly sandbox: string
  readonly schoolHeader: string
  readonly registersPerSecond: number
  readonly signal: AbortSignal
}

const MARKS = 10
/** The time in seconds in which every school posts one register. It equals the window of a guard. */
const ROUND_S = 10
/** The pause before a client resends a register that was not accepted, in milliseconds. */
const RETRY_MS = 5_000
/** After every twentieth register, its last mark is corrected. */
const CORRECTED = 20
/** The number of attendance codes in the marks. The fewer codes there are, the sooner all of them have been compared. */
const CODES = 4

const samplesSchema = z.object({
  learners: z.array(z.string()).min(1),
  events: z.array(z.string()).min(1),
  codes: z.array(z.object({ id: z.string() })).min(CODES),
})

/** Starts the V2 clients of many schools. A client resends a register until every mark of the register is accepted. */
export async function startTraffic(options: TrafficOptions) {
  const { adapter, sandbox, schoolHeader, registersPerSecond, signal } = options
  const { learners, events, codes } = samplesSchema.parse(
    await (await request(`${sandbox}/_sandbox/samples`)).body.json(),
  )
  const schools = registersPerSecond * ROUND_S
  const counts = { accepted: 0, refusals: 0 }
  const running = new Set<Promise<void>>()
  const stopping = new AbortController()

  const markOf = (index: number, fields: object): object => ({
    Present: true,
    Absent: false,
    Learner: learners[index % learners.length],
    AttendableEvent: events[Math.floor(index / learners.length) % events.length],
    SchoolAttendanceCode: codes[index % CODES]?.id,
    MinutesLate: index % MARKS === 0 ? 4 : null,
    ...(index % MARKS === 1 ? { Comment: 'bus' } : {}),
    ...fields,
  })
  const post = async (id: string, school: number, marks: readonly object[]): Promise<void> => {
    const { contentType, body } = encodeRegister(id, marks)
    const headers = {
      'Content-Type': contentType,
      'Ocp-Apim-Subscription-Key': 'sandbox',
      Authorization: 'bearer sandbox',
      [schoolHeader]: String(3_001 + school),
    }
    while (!signal.aborted) {
      const path = `${adapter}/V2/Attendance/$batch`
      const text = await request(path, { method: 'POST', headers, body }).then(
        (reply) => reply.body.text(),
        () => '',
      )
      if (text.match(/^HTTP\/1\.1 201 /gm)?.length === marks.length) {
        counts.accepted += marks.length
        return
      }
      counts.refusals += 1
      await delay(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
  }
  const takeRegister = async (number: number): Promise<void> => {
    const marks = Array.from({ length: MARKS }, (_, at) => markOf(number * MARKS + at, {}))
    await post(`${number}`, number % schools, marks)
    const last = markOf(number * MARKS + MARKS - 1, { Comment: 'corrected' })
    if (number % CORRECTED === 0) await post(`${number}-corrected`, number % schools, [last])
  }
  const drive = async (): Promise<void> => {
    for (let number = 0; !stopping.signal.aborted && !signal.aborted; number += 1) {
      const register = takeRegister(number).finally(() => running.delete(register))
      running.add(register)
      await delay(1_000 / registersPerSecond)
    }
  }
  const driving = drive()
  return {
    schools,
    /** Returns the number of marks that clients saw accepted, and of replies in which some marks were not accepted. */
    counts: (): Readonly<typeof counts> => ({ ...counts }),
    /** Starts no further registers. Resolves once every started register has been accepted, or when `signal` aborts. */
    stop: async (): Promise<void> => {
      stopping.abort()
      await driving
      await Promise.all(running)
    },
  }
}

/** Encodes marks as a V2 client does: as a batch with one changeset (service.md 4.2). */
function encodeRegister(id: string, marks: readonly object[]): { contentType: string; body: string } {
  const parts = marks.flatMap((mark, at) => [
    `--changeset_${id}`,
    'Content-Type: application/http',
    'Content-Transfer-Encoding: binary',
    `Content-ID: ${at + 1}`,
    '',
    'POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1',
    'Content-Type: application/json',
    'Prefer: return=representation',
    '',
    JSON.stringify(mark),
  ])
  const head = [`--batch_${id}`, `Content-Type: multipart/mixed; boundary=changeset_${id}`, '']
  const body = [...head, ...parts, `--changeset_${id}--`, `--batch_${id}--`, ''].join('\r\n')
  return { contentType: `multipart/mixed; boundary=batch_${id}`, body }
}
