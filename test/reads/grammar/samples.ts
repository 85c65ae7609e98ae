import { createSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/index.ts'

/** Ids and times of a school that reads are made of. */
export interface Samples {
  readonly learners: readonly string[]
  readonly events: readonly string[]
  readonly codes: readonly string[]
  /** Ids of recorded marks. */
  readonly marks: readonly string[]
  /** Starts of sessions, ISO 8601. */
  readonly starts: readonly string[]
  readonly fromMs: number
  readonly toMs: number
}

/** A running sandbox with marks that hold more than the seed has. */
export interface SampleSchool {
  readonly sandbox: Sandbox
  readonly url: string
  readonly samples: Samples
}

export const credentials = {
  'Ocp-Apim-Subscription-Key': 'sandbox',
  Authorization: 'Bearer sandbox',
} as const

/** Comments that a filter, an encoding or an error text could trip over. */
export const comments = [
  'late', 'Bus was late', "O'Brien rang", '100% sure', 'a&b=c', '#1', 'plus + minus', '', ' padded ', 'Straße', 'naïve',
  '日本', '🚌 late', 'tab\tbetween', 'quote "x"', 'back\\slash', 'semi;colon', 'LATE', 'a,b', '(x)', 'null', '@x',
] as const // prettier-ignore

/** Starts a sandbox whose clock stands still and posts marks to it: comments, minutes, second marks of one session. */
export async function startSchool(options: SandboxOptions = {}): Promise<SampleSchool> {
  const sandbox = createSandbox({ now: '2026-06-10T10:00:00Z', onExisting: 'duplicate', ...options })
  const { url } = await sandbox.listen()
  const json = async (path: string, init: RequestInit = {}): Promise<unknown> =>
    (
      await fetch(url + path, { ...init, headers: { ...credentials, 'Content-Type': 'application/json' } })
    ).json()
  const { learners, events, codes, from, to } = (await json('/_sandbox/samples')) as {
    learners: string[]
    events: string[]
    codes: { id: string; code: string }[]
    from: string
    to: string
  }
  // Nobody records the code that stands for no mark (service-facts 19): the adapter would leave it out.
  const ids = codes.filter(({ code }) => code !== '-').map(({ id }) => id)
  for (const [index, comment] of [...comments, ...comments].entries())
    await json('/V2/Attendance/AttendanceRecords', {
      method: 'POST',
      body: JSON.stringify({
        Present: index % 3 === 0,
        Absent: index % 3 === 1,
        Comment: comment,
        Learner: learners[(index * 7) % 30],
        AttendableEvent: events[index % 4],
        SchoolAttendanceCode: ids[index % ids.length],
        MinutesLate: index % 5 === 0 ? null : index - 3,
      }),
    })
  const filter = encodeURIComponent(`AttendableEventStart ge ${from} and AttendableEventStart lt ${to}`)
  const { value } = (await json(`/V2/Attendance/AttendanceRecords?$filter=${filter}`)) as {
    value: { ExternalID: string; AttendableEventStart: string }[]
  }
  const samples = {
    learners: learners.slice(0, 40),
    events,
    codes: ids,
    marks: value.filter((_, index) => index % 9 === 0).map(({ ExternalID }) => ExternalID),
    starts: [...new Set(value.map(({ AttendableEventStart }) => AttendableEventStart))],
    fromMs: Date.parse(from),
    toMs: Date.parse(to),
  }
  return { sandbox, url, samples }
}
