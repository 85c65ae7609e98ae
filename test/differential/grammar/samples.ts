import { createSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/index.ts'

/** Ids and times of a school, which the generated reads contain. */
export interface Samples {
  readonly learners: readonly string[]
  readonly events: readonly string[]
  readonly codes: readonly string[]
  /** The ids of recorded marks. */
  readonly marks: readonly string[]
  /** The learner whose mark on `noMarkDay` has the code `-` and the comment `NO_MARK`. Generated reads avoid the learner and the day. */
  readonly noMarkLearner: string
  /** The starts of sessions, in ISO 8601. */
  readonly starts: readonly string[]
  readonly fromMs: number
  readonly toMs: number
}

/** A running sandbox to which marks were posted in addition to the marks that it generates. */
export interface SampleSchool {
  readonly sandbox: Sandbox
  readonly url: string
  readonly samples: Samples
}

export const credentials = {
  'Ocp-Apim-Subscription-Key': 'sandbox',
  Authorization: 'Bearer sandbox',
} as const

/** Comments that could confuse a filter, an encoding or an error text. */
export const comments = [
  'late', 'Bus was late', "O'Brien rang", '100% sure', 'a&b=c', '#1', 'plus + minus', '', ' padded ', 'Straße', 'naïve',
  '日本', '🚌 late', 'tab\tbetween', 'quote "x"', 'back\\slash', 'semi;colon', 'LATE', 'a,b', '(x)', 'null', '@x',
] as const // prettier-ignore

interface Row {
  readonly ExternalID: string
  readonly AttendableEvent: string
  readonly AttendableEventStart: string
}

const NO_MARK_LEARNER = 20
/** The comment of the only mark that was posted with the code for "no mark" (docs/reads.md). */
export const NO_MARK = 'nobody marked this'
/** The filter for the day of the mark with the comment `NO_MARK`. Generated ranges begin later. */
export const noMarkDay =
  'AttendableEventStart ge 2025-09-10T00:00:00Z and AttendableEventStart lt 2025-09-11T00:00:00Z'

/** Starts a sandbox whose clock stands still. Posts marks with comments and minutes, so that some sessions have two marks. */
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
  // Leaves out the code for "no mark", because the adapter omits marks with this code. One such mark is posted below.
  const ids = codes.filter(({ code }) => code !== '-').map(({ id }) => id)
  const post = (record: object): Promise<unknown> =>
    json('/V2/Attendance/AttendanceRecords', { method: 'POST', body: JSON.stringify(record) })
  const read = async (filter: string): Promise<readonly Row[]> =>
    (
      (await json(`/V2/Attendance/AttendanceRecords?$filter=${encodeURIComponent(filter)}`)) as {
        value: Row[]
      }
    ).value
  for (const [index, comment] of [...comments, ...comments].entries())
    await post({
      Present: index % 3 === 0,
      Absent: index % 3 === 1,
      Comment: comment,
      Learner: learners[(index * 7) % 30],
      AttendableEvent: events[index % 4],
      SchoolAttendanceCode: ids[index % ids.length],
      MinutesLate: index % 5 === 0 ? null : index - 3,
    })
  const noMarkLearner = learners[NO_MARK_LEARNER] ?? ''
  const [marked] = await read(`Learner eq ${noMarkLearner} and ${noMarkDay}`)
  await post({
    Present: false,
    Absent: false,
    Comment: NO_MARK,
    Learner: noMarkLearner,
    AttendableEvent: marked?.AttendableEvent,
    SchoolAttendanceCode: codes.find(({ code }) => code === '-')?.id,
  })
  const value = await read(`AttendableEventStart ge ${from} and AttendableEventStart lt ${to}`)
  const samples = {
    learners: learners.slice(0, 40).filter((id) => id !== noMarkLearner),
    noMarkLearner,
    events,
    codes: ids,
    marks: value.filter((_, index) => index % 9 === 0).map(({ ExternalID }) => ExternalID),
    starts: [...new Set(value.map(({ AttendableEventStart }) => AttendableEventStart))],
    fromMs: Date.parse(from),
    toMs: Date.parse(to),
  }
  return { sandbox, url, samples }
}
