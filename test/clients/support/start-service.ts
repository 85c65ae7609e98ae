import { expect } from 'vitest'

import type { SandboxOptions } from '../../../src/sandbox/index.ts'
import { fixed, type Samples, sandboxHeaders, startSandbox } from '../../sandbox/start-sandbox.ts'
import { type Adapter, type AdapterSettings, onePartner, startAdapter } from '../../support/start-adapter.ts'

/** A flat record as a client posts it (service.md 4.2). */
export interface Mark {
  readonly Present: boolean
  readonly Absent: boolean
  readonly Learner: string
  readonly AttendableEvent: string
  readonly SchoolAttendanceCode: string
  readonly MinutesLate: number | null
  readonly Comment: string | null
}

/** The outcome of one record as its client reads it: the stored mark, or the codes of the errors. */
export interface RecordAnswer {
  readonly status: number
  readonly mark?: Mark
  readonly codes?: readonly string[]
}

/** A sandbox and the adapter in front of it over sockets, with a register to post. */
export interface Service {
  readonly adapter: Adapter
  readonly sandbox: Awaited<ReturnType<typeof startSandbox>>
  readonly samples: Samples
  /** The URL of the V2 service, which ends in a slash. */
  readonly root: string
  readonly headers: Readonly<Record<string, string>>
  readonly register: readonly Mark[]
  readonly expected: readonly RecordAnswer[]
  /** Returns the marks that the sandbox accepted, in the order of the register. */
  acceptedMarks(): Promise<readonly Mark[]>
}

const prefix = '/sp-api-write-back-partner-live/V2/Attendance/'

/** Starts the sandbox, and the adapter with these settings of its only partner. Both stop at the end of the test. */
export async function startService(
  partner: object = {},
  options: SandboxOptions = {},
  settings: AdapterSettings = {},
): Promise<Service> {
  const sandbox = await startSandbox(options)
  const adapter = await startAdapter(sandbox.url, { ...settings, ...onePartner(partner) })
  const samples = await sandbox.samples()
  const marked = registerOf(samples)
  const register = marked.map(({ mark }) => mark)
  return {
    adapter,
    sandbox,
    samples,
    root: adapter.url + prefix,
    headers: sandboxHeaders,
    register,
    expected: marked.map(({ mark, codes }) =>
      codes === undefined ? { status: 201, mark } : { status: 400, codes },
    ),
    acceptedMarks: async () => {
      const { body } = await sandbox.json('GET', '/_sandbox/effects')
      const place = ({ Learner }: Mark): number => register.findIndex((mark) => mark.Learner === Learner)
      return (body as Effect[]).map(toMark).sort((one, other) => place(one) - place(other))
    },
  }
}

/** Converts a part to the outcome of its record. `body` is the body of the part as the client library returned it. */
export function recordAnswerOf(status: number, body: unknown): RecordAnswer {
  if (Array.isArray(body)) {
    const errors = body as Readonly<Record<string, unknown>>[]
    expect(new Set(errors.map((error) => error['SequenceID'])).size).toBe(1)
    return { status, codes: errors.map(({ ErrorCode }) => String(ErrorCode)) }
  }
  const { Present, Absent, Learner, AttendableEvent, SchoolAttendanceCode, MinutesLate, Comment } =
    body as Mark
  return {
    status,
    mark: { Present, Absent, Learner, AttendableEvent, SchoolAttendanceCode, MinutesLate, Comment },
  }
}

export function marksOf(answers: readonly RecordAnswer[]): readonly Mark[] {
  return answers.flatMap(({ mark }) => (mark === undefined ? [] : [mark]))
}

interface Effect {
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly present: boolean
  readonly absent: boolean
  readonly minutesLate: number | null
  readonly comment: string | null
}

function toMark(effect: Effect): Mark {
  return {
    Present: effect.present,
    Absent: effect.absent,
    Learner: effect.learner,
    AttendableEvent: effect.event,
    SchoolAttendanceCode: effect.code,
    MinutesLate: effect.minutesLate,
    Comment: effect.comment,
  }
}

/** Returns a register with valid and invalid records, with texts that a careless reader of multipart or JSON would misread. */
function registerOf(samples: Samples): readonly { mark: Mark; codes?: readonly string[] }[] {
  const idOf = (wanted: string): string => samples.codes.find(({ code }) => code === wanted)?.id ?? ''
  const marks: [code: string, choices: Partial<Mark>, codes?: readonly string[]][] = [
    ['/', {}],
    ['L', { MinutesLate: 12, Comment: 'Bus late – 8 km, "traffic" é 😀' }],
    ['/', { AttendableEvent: fixed.unknown }, ['ATT_VAL_2']],
    ['I', { Present: false, Absent: true, Comment: 'HTTP/1.1 500 No\r\n\r\n--batch_x--\r\n{"d":1}' }],
    ['/', { SchoolAttendanceCode: fixed.unknown }, ['ATT_VAL_3']],
    ['/', { AttendableEvent: fixed.unknown, SchoolAttendanceCode: fixed.unknown }, ['ATT_VAL_2', 'ATT_VAL_3']],
    ['/', { Comment: '' }],
  ] // prettier-ignore
  return marks.map(([code, choices, codes], index) => ({
    mark: {
      Present: true,
      Absent: false,
      Learner: samples.learners[index] ?? '',
      AttendableEvent: samples.events[0] ?? '',
      SchoolAttendanceCode: idOf(code),
      MinutesLate: null,
      Comment: null,
      ...choices,
    },
    ...(codes === undefined ? {} : { codes }),
  }))
}
