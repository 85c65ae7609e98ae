import type { Random } from '../../src/sandbox/random.ts'
import { storeValues, type ValueRules } from '../../src/sandbox/control/stored-values.ts'
import type { ServiceReply, ServiceRequest } from './simulated-network.ts'
import { START_MS, type World } from './world.ts'

/** A write that the service has made, in the order in which it made them. */
export interface Effect {
  readonly atMs: number
  readonly key: string
  /** What its client calls it: the first word of the comment. */
  readonly name: string
  readonly comment: string | null
  readonly token: string
  readonly externalId: string
}

interface Mark {
  readonly externalId: string
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly present: boolean
  readonly absent: boolean
  readonly minutesLate: number | null
  readonly comment: string | null
  readonly recordedOn: number
}

/** How the service behaves; what may change in the middle is read each time. */
export interface ServiceHabits {
  readonly onExisting: 'replace' | 'duplicate' | 'conflict'
  /** Reads show the marks as they were so long ago, at most. */
  readonly staleMs: number
  /** One mark that takes the place of another has its id. */
  readonly keepsIds: boolean
  values: ValueRules
  /** Answers instead of serving, in this share of the requests. */
  storm: { readonly status: 429 | 500 | 503; readonly share: number; readonly isApplied: boolean } | undefined
  readonly tokens: Set<string>
}

/** The service behind the adapter: V3 as service.md has it, with its own clock and habits. */
export class SimulatedService {
  readonly effects: Effect[] = []
  onEffect: () => void = () => undefined
  private readonly world: World
  private readonly habits: ServiceHabits
  private readonly random: Random
  private readonly marks = new Map<string, Mark[]>()
  /** The marks of each key before each of its changes, with the time of the change. */
  private readonly history = new Map<
    string,
    { readonly untilMs: number; readonly marks: readonly Mark[] }[]
  >()
  private ids = 0

  constructor(world: World, habits: ServiceHabits) {
    this.world = world
    this.habits = habits
    this.random = world.random('service')
  }

  serve = (request: ServiceRequest): ServiceReply => {
    const token = request.headers['authorization'] ?? ''
    if (!this.habits.tokens.has(token)) return failure(401, 'the token is wrong')
    const { storm } = this.habits
    const isStorm = storm !== undefined && this.random.chance(storm.share)
    if (isStorm && !(storm.isApplied && storm.status === 500))
      return failure(storm.status, 'the service is down')
    const reply = request.method === 'POST' ? this.post(request.body, token) : this.read(request.path)
    return isStorm ? failure(storm.status, 'the service failed') : reply
  }

  /** Another program writes past the adapter. */
  writePast(key: string): void {
    const [learner = '', event = ''] = key.split(' ')
    const name = `other${(this.ids += 1)}`
    this.keep(
      key,
      this.toMark({ learner, event, code: guid(8, 1), minutesLate: null, comment: name }, undefined),
      name,
      'other',
    )
  }

  private post(body: string, token: string): ServiceReply {
    const posted = JSON.parse(body) as Posted
    const learner = posted.Attendee.ExternalID
    const event = posted.Event.ExternalID
    const key = `${learner} ${event}`
    const comment = posted.Qualifier.Comment ?? null
    const name = (comment ?? '').split(' ')[0] ?? ''
    if (name.startsWith('bad')) {
      const Message = 'The code is not valid.'
      return {
        status: 400,
        body: JSON.stringify([
          { Message, ErrorCode: 'ATT_VAL_2', ResourceIdentifier: '', SequenceID: guid(7, 1) },
        ]),
      }
    }
    if (
      this.habits.onExisting === 'conflict' &&
      (this.marks.get(key) ?? []).length > 0 &&
      !name.startsWith('other')
    )
      return failure(409, 'there is a mark already')
    const minutesLate = posted.Qualifier.MinutesLate ?? null
    const recordedOn =
      posted.RecordedOn === null || posted.RecordedOn === undefined
        ? undefined
        : Date.parse(posted.RecordedOn)
    const values = { learner, event, code: posted.AttendanceCode.ExternalID, minutesLate, comment }
    const mark = this.toMark(values, recordedOn)
    this.keep(key, mark, name, token)
    const isEchoed = this.habits.values.echo === 'posted'
    const shown = isEchoed
      ? { ...mark, minutesLate, comment, recordedOn: recordedOn ?? mark.recordedOn }
      : mark
    return { status: 201, body: JSON.stringify(toEntity(shown)) }
  }

  private toMark(
    values: Omit<Mark, 'externalId' | 'present' | 'absent' | 'recordedOn'>,
    recordedOn: number | undefined,
  ): Mark {
    const nowMs = Math.round(START_MS + this.world.nowMs)
    const { stored } = storeValues(this.habits.values, { ...values, recordedOn }, nowMs)
    return { ...values, ...stored, externalId: guid(1, (this.ids += 1)), present: true, absent: false }
  }

  private keep(key: string, mark: Mark, name: string, token: string): void {
    const before = this.marks.get(key) ?? []
    const kept = this.history.get(key) ?? []
    kept.push({ untilMs: this.world.nowMs, marks: before })
    this.history.set(key, kept)
    // One that replaces a mark keeps its id.
    const [first] = before
    const replaced =
      this.habits.onExisting === 'replace' && this.habits.keepsIds && first !== undefined
        ? { ...mark, externalId: first.externalId }
        : mark
    this.marks.set(key, this.habits.onExisting === 'duplicate' ? [...before, replaced] : [replaced])
    this.effects.push({
      atMs: this.world.nowMs,
      key,
      name,
      comment: mark.comment,
      token,
      externalId: replaced.externalId,
    })
    this.onEffect()
    this.world.tell(() => `service: applied ${name} on ${key.slice(-4)}`)
  }

  private read(path: string): ServiceReply {
    const filter = decodeURIComponent(path)
    const [, learner = '', event = ''] =
      /Attendee\/ExternalID eq (\S+) and Event\/ExternalID eq (\S+)/.exec(filter) ?? []
    const key = `${learner} ${event}`
    const agoMs = this.habits.staleMs === 0 ? 0 : this.random.next() * this.habits.staleMs
    const atMs = this.world.nowMs - agoMs
    const marks =
      (this.history.get(key) ?? []).find(({ untilMs }) => untilMs > atMs)?.marks ?? this.marks.get(key) ?? []
    return { status: 200, body: JSON.stringify({ value: marks.map(toEntity) }) }
  }

  standing(key: string): Mark | undefined {
    return this.marks.get(key)?.at(-1)
  }
}

interface Posted {
  readonly RecordedOn?: string | null
  readonly Attendee: { readonly ExternalID: string }
  readonly Event: { readonly ExternalID: string }
  readonly AttendanceCode: { readonly ExternalID: string }
  readonly Qualifier: { readonly MinutesLate?: number | null; readonly Comment?: string | null }
}

const toEntity = (mark: Mark): object => ({
  ExternalID: mark.externalId,
  Present: mark.present,
  Absent: mark.absent,
  RecordedOn: new Date(mark.recordedOn).toISOString(),
  ChangeProcessName: null,
  AttendableEventStart: '2026-03-02T09:00:00Z',
  RecordedBy: { ExternalID: guid(6, 1), Type: 'AuthorisedUser' },
  Attendee: { ExternalID: mark.learner, Type: 'Learner.Identifier' },
  Event: { ExternalID: mark.event, Type: 'Attendance.AttendanceSession' },
  AttendanceCode: { ExternalID: mark.code, Type: 'Attendance.Lookup' },
  Qualifier: { MinutesLate: mark.minutesLate, Comment: mark.comment },
})

const failure = (status: number, message: string): ServiceReply => ({
  status,
  body: JSON.stringify({ statusCode: status, message }),
  ...(status === 429 ? { headers: { 'retry-after': '1' } } : {}),
})

/** A guid that shows what it is of and its number. */
export function guid(kind: number, number: number): string {
  return `${String(kind).padStart(8, '0')}-0000-4000-8000-${String(number).padStart(12, '0')}`
}
