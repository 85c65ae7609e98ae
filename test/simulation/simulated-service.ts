import type { Random } from '../../src/sandbox/random.ts'
import { storeValues, type ValueRules } from '../../src/sandbox/control/stored-values.ts'
import {
  createBatchEncoder,
  decodeBatch,
  decodeRecordBytes,
  encodeErrorArray,
  encodeFlatReply,
  type FlatRecord,
} from '../../src/v2/index.ts'
import type { Serve, ServiceReply, ServiceRequest } from './simulated-network.ts'
import { type Actor, START_MS, type World } from './world.ts'

/** A write that the service has made, in the order in which it made them. */
export interface Effect {
  readonly atMs: number
  readonly key: string
  /** What its client calls it: the first word of the comment. */
  readonly name: string
  readonly comment: string | null
  readonly token: string
  readonly externalId: string
  /** The number of the client's request if V2 was sent it, or `undefined` if V3 was. */
  readonly send: number | undefined
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
  /** V3 takes so long for each record of a batch, one after another, also when the connection is gone. */
  readonly paceMs: number
}

/** A mark that is written, on either face. */
interface Written {
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly minutesLate: number | null
  readonly comment: string | null
  /** The posted time, or `undefined` if the service takes its own time. */
  readonly recordedOn: number | undefined
}

/** Who writes: the token, and of V2 the number of the client's request. */
interface Writer {
  readonly token: string
  readonly send: number | undefined
}

/** The field by which a request to V2 says which one of its client's it is. */
export const SEND_FIELD = 'x-send'
const INVALID = 'The code is not valid.'
const JSON_TYPE = { 'content-type': 'application/json' }

/** The service behind the adapter: V3 and V2 as service.md has them, over the same marks, with its own clock and habits. */
export class SimulatedService {
  readonly effects: Effect[] = []
  onEffect: () => void = () => undefined
  /** V2 was sent a batch, with this request of its client. */
  onRelayed: (send: number) => void = () => undefined
  private readonly world: World
  private readonly actor: Actor
  private readonly habits: ServiceHabits
  private readonly random: Random
  private readonly marks = new Map<string, Mark[]>()
  /** The marks of each key before each of its changes, with the time of the change. */
  private readonly history = new Map<
    string,
    { readonly untilMs: number; readonly marks: readonly Mark[] }[]
  >()
  private ids = 0

  constructor(world: World, actor: Actor, habits: ServiceHabits) {
    this.world = world
    this.actor = actor
    this.habits = habits
    this.random = world.random('service')
  }

  private readonly newId = (): string => guid(9, (this.ids += 1))

  /** The face of V3. */
  serve: Serve = (request, answer) =>
    this.answer(request, answer, (token, reply) => {
      if (request.method === 'POST') this.postToV3(request, token, reply)
      else reply(this.read(request.path, toEntity))
    })

  /** The face of V2. */
  serveV2: Serve = (request, answer) => {
    const send = Number(request.headers[SEND_FIELD])
    if (request.method === 'POST') this.onRelayed(send)
    this.answer(request, answer, (token, reply) =>
      reply(
        request.method === 'POST' ? this.postToV2(request, { token, send }) : this.read(request.path, toFlat),
      ),
    )
  }

  private answer(
    { headers }: ServiceRequest,
    send: (reply: ServiceReply) => void,
    act: (token: string, reply: (reply: ServiceReply) => void) => void,
  ): void {
    const token = headers['authorization'] ?? ''
    const { storm } = this.habits
    if (!this.habits.tokens.has(token)) send(failure(401, 'the token is wrong'))
    else if (storm === undefined || !this.random.chance(storm.share)) act(token, send)
    else if (storm.isApplied && storm.status === 500)
      act(token, () => send(failure(storm.status, 'the service failed')))
    else send(failure(storm.status, 'the service is down'))
  }

  /** Another program writes past the adapter. */
  writePast(key: string): void {
    const [learner = '', event = ''] = key.split(' ')
    const name = `other${(this.ids += 1)}`
    const values = { learner, event, code: guid(8, 1), minutesLate: null, comment: name }
    this.keep(key, this.toMark(values, undefined), name, { token: 'other', send: undefined })
  }

  private postToV3(
    { path, headers, body }: ServiceRequest,
    token: string,
    reply: (reply: ServiceReply) => void,
  ): void {
    const [, boundary] = /boundary=(\S+)/.exec(headers['content-type'] ?? '') ?? []
    if (boundary === undefined && !path.endsWith('$batch'))
      reply(this.post(JSON.parse(body) as Posted, token))
    else if (!path.endsWith('$batch')) reply(failure(404, 'there is no such address'))
    else if (boundary === undefined) {
      const { requests } = JSON.parse(body) as { readonly requests: readonly BatchedPost[] }
      this.postEach(requests, token, (answers) => reply(toJsonReply(answers)))
    } else
      this.postEach(readParts(body, boundary), token, (answers) =>
        reply(toMultipartReply(answers, `reply_${guid(9, (this.ids += 1))}`)),
      )
  }

  /** Makes the writes of a batch one after another, whatever becomes of its connection. */
  private postEach(
    requests: readonly BatchedPost[],
    token: string,
    done: (answers: readonly BatchAnswer[]) => void,
  ): void {
    const answers: BatchAnswer[] = []
    const next = (): void => {
      const request = requests[answers.length]
      if (request === undefined) {
        done(answers)
        return
      }
      const act = (): void => {
        answers.push({ id: request.id, ...this.post(request.body, token) })
        next()
      }
      if (this.habits.paceMs === 0) act()
      else this.world.at(this.actor, this.habits.paceMs, act)
    }
    next()
  }

  private post(posted: Posted, token: string): ServiceReply {
    const { RecordedOn: recordedOn } = posted
    const written = this.write(
      {
        learner: posted.Attendee.ExternalID,
        event: posted.Event.ExternalID,
        code: posted.AttendanceCode.ExternalID,
        minutesLate: posted.Qualifier.MinutesLate ?? null,
        comment: posted.Qualifier.Comment ?? null,
        recordedOn: recordedOn === null || recordedOn === undefined ? undefined : Date.parse(recordedOn),
      },
      { token, send: undefined },
    )
    if (written === 'conflict') return failure(409, 'there is a mark already')
    if (written !== 'invalid') return { status: 201, body: JSON.stringify(toEntity(written)) }
    const error = { Message: INVALID, ErrorCode: 'ATT_VAL_2', ResourceIdentifier: '', SequenceID: guid(7, 1) }
    return { status: 400, body: JSON.stringify([error]) }
  }

  /** A single record; or a batch, with one part for each record in their order, whatever becomes of the others. */
  private postToV2({ path, headers, body }: ServiceRequest, writer: Writer): ServiceReply {
    const bytes = Buffer.from(body, 'latin1')
    if (!path.endsWith('$batch')) {
      const { status, json } = this.postFlat(decodeRecordBytes(bytes, headers['content-type']).record, writer)
      return { status, headers: JSON_TYPE, body: json }
    }
    const { parts } = decodeBatch(bytes, headers['content-type'])
    const encoder = createBatchEncoder('flat', this.newId)
    const texts = parts.map((part) => encoder.part({ ...part, ...this.postFlat(part.record, writer) }))
    const type = { 'content-type': encoder.contentType }
    return { status: 200, headers: type, body: texts.join('') + encoder.close(1) }
  }

  /** `record`: undefined where it cannot be read. */
  private postFlat(
    record: FlatRecord | undefined,
    writer: Writer,
  ): { readonly status: number; readonly json: string } {
    const refuse = (status: number, code: string, message: string) => ({
      status,
      json: encodeErrorArray([{ code, message }], this.newId()),
    })
    if (record === undefined) return refuse(400, 'ATT_VAL_3', INVALID)
    const { Learner: learner, AttendableEvent: event, SchoolAttendanceCode: code } = record
    const { MinutesLate: minutesLate = null, Comment: comment = null } = record
    const written = this.write({ learner, event, code, minutesLate, comment, recordedOn: undefined }, writer)
    if (written === 'invalid') return refuse(400, 'ATT_VAL_2', INVALID)
    if (written === 'conflict') return refuse(409, 'CONFLICT', 'there is a mark already')
    return { status: 201, json: encodeFlatReply(toFlat(written), CONTEXT, 'minimal') }
  }

  /** The mark as the reply to its write shows it. */
  private write({ recordedOn, ...values }: Written, writer: Writer): Mark | 'invalid' | 'conflict' {
    const { learner, event, minutesLate, comment } = values
    const key = `${learner} ${event}`
    const name = (comment ?? '').split(' ')[0] ?? ''
    if (name.startsWith('bad')) return 'invalid'
    if (this.habits.onExisting === 'conflict' && (this.marks.get(key) ?? []).length > 0) return 'conflict'
    const mark = this.keep(key, this.toMark(values, recordedOn), name, writer)
    const isEchoed = this.habits.values.echo === 'posted'
    return isEchoed ? { ...mark, minutesLate, comment, recordedOn: recordedOn ?? mark.recordedOn } : mark
  }

  private toMark(
    values: Omit<Mark, 'externalId' | 'present' | 'absent' | 'recordedOn'>,
    recordedOn: number | undefined,
  ): Mark {
    const nowMs = Math.round(START_MS + this.world.nowMs)
    const { stored } = storeValues(this.habits.values, { ...values, recordedOn }, nowMs)
    return { ...values, ...stored, externalId: guid(1, (this.ids += 1)), present: true, absent: false }
  }

  /** The mark as it stands then. */
  private keep(key: string, mark: Mark, name: string, writer: Writer): Mark {
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
      ...writer,
      externalId: replaced.externalId,
    })
    this.onEffect()
    this.world.tell(
      () => `${writer.send === undefined ? 'service' : 'V2'}: applied ${name} on ${key.slice(-4)}`,
    )
    return replaced
  }

  private read(path: string, show: (mark: Mark) => object): ServiceReply {
    const filter = decodeURIComponent(path)
    const [, learner = '', event = ''] = / eq (\S+) and \S+ eq (\S+)/.exec(filter) ?? []
    const key = `${learner} ${event}`
    const agoMs = this.habits.staleMs === 0 ? 0 : this.random.next() * this.habits.staleMs
    const atMs = this.world.nowMs - agoMs
    const marks =
      (this.history.get(key) ?? []).find(({ untilMs }) => untilMs > atMs)?.marks ?? this.marks.get(key) ?? []
    return { status: 200, body: JSON.stringify({ value: marks.map(show) }) }
  }

  standing(key: string): Mark | undefined {
    return this.marks.get(key)?.at(-1)
  }
}

/** A request of a JSON batch. */
interface BatchedPost {
  readonly id: string
  readonly body: Posted
}

type BatchAnswer = ServiceReply & { readonly id: string }

/** The requests of a multipart batch. */
const readParts = (body: string, boundary: string): readonly BatchedPost[] =>
  body
    .split(`--${boundary}`)
    .slice(1, -1)
    .map((part) => {
      const [, id = ''] = /^Content-ID: (.*)$/m.exec(part) ?? []
      return { id: id.trim(), body: JSON.parse(part.slice(part.indexOf('{'))) as Posted }
    })

function toJsonReply(answers: readonly BatchAnswer[]): ServiceReply {
  const responses = answers.map(({ id, status, body }) => {
    return { id, status, headers: JSON_TYPE, body: JSON.parse(body) as unknown }
  })
  return { status: 200, body: JSON.stringify({ responses }) }
}

/** A part for each request, which a reply that breaks off leaves as they are. */
function toMultipartReply(answers: readonly BatchAnswer[], boundary: string): ServiceReply {
  const parts = answers.map(({ id, status, body }) => {
    const head = `Content-Type: application/http\r\nContent-ID: ${id}`
    return `--${boundary}\r\n${head}\r\n\r\nHTTP/1.1 ${status} \r\nContent-Type: application/json\r\n\r\n${body}\r\n`
  })
  const type = { 'content-type': `multipart/mixed; boundary=${boundary}` }
  return { status: 200, headers: type, body: `${parts.join('')}--${boundary}--\r\n` }
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

const CONTEXT = 'http://v2/V2/Attendance/$metadata#AttendanceRecords/$entity'

const toFlat = (mark: Mark) => ({
  ExternalID: mark.externalId,
  Present: mark.present,
  Absent: mark.absent,
  RecordedOn: new Date(mark.recordedOn).toISOString(),
  ChangeProcessName: null,
  AttendableEventStart: '2026-03-02T09:00:00Z',
  RecordedBy: guid(6, 1),
  Learner: mark.learner,
  AttendableEvent: mark.event,
  SchoolAttendanceCode: mark.code,
  MinutesLate: mark.minutesLate,
  Comment: mark.comment,
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
