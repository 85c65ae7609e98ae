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

/** A write that the service applied. */
export interface Effect {
  readonly atMs: number
  readonly key: string
  /** The client's name for the record, which is the first word of the comment. */
  readonly name: string
  readonly comment: string | null
  readonly token: string
  readonly externalId: string
  /** The number of the client's request if V2 applied the write, or `undefined` if V3 did. */
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

/** The behaviour of the service. Members that are not read-only may change during a history. */
export interface ServiceHabits {
  readonly onExisting: 'replace' | 'duplicate' | 'conflict'
  /** The largest age of the data that reads return. */
  readonly staleMs: number
  /** True if a mark that replaces another mark keeps its id. */
  readonly keepsIds: boolean
  values: ValueRules
  /** An error that the service returns for this share of the requests. With `isApplied` and 500, the service applies the request first. */
  storm: { readonly status: 429 | 500 | 503; readonly share: number; readonly isApplied: boolean } | undefined
  readonly tokens: Set<string>
  /** The time that V3 takes for each record of a batch. V3 executes them one after another, even after the connection is lost. */
  readonly paceMs: number
}

interface WrittenValues {
  readonly learner: string
  readonly event: string
  readonly code: string
  readonly minutesLate: number | null
  readonly comment: string | null
  /** The posted time, or `undefined` if the service uses its own time. */
  readonly recordedOn: number | undefined
}

/** The origin of a write. `send` is the number of the client's request on V2, or `undefined` on V3. */
interface Writer {
  readonly token: string
  readonly send: number | undefined
}

/** The header that names the client's request in a request to V2. */
export const SEND_FIELD = 'x-send'
const INVALID = 'The code is not valid.'
const JSON_TYPE = { 'content-type': 'application/json' }

/** The service behind the adapter: the interfaces V2 and V3 of service.md over the same marks. */
export class SimulatedService {
  readonly effects: Effect[] = []
  onEffect: () => void = () => undefined
  /** Called when V2 receives a write, with the number of the client's request. */
  onV2Request: (send: number) => void = () => undefined
  private readonly world: World
  private readonly actor: Actor
  private readonly habits: ServiceHabits
  private readonly random: Random
  private readonly marks = new Map<string, Mark[]>()
  /** The earlier marks of each key, each with the time at which they were replaced. */
  private readonly earlierMarks = new Map<
    string,
    { readonly untilMs: number; readonly marks: readonly Mark[] }[]
  >()
  private idCount = 0

  constructor(world: World, actor: Actor, habits: ServiceHabits) {
    this.world = world
    this.actor = actor
    this.habits = habits
    this.random = world.random('service')
  }

  private readonly newId = (): string => guid(9, (this.idCount += 1))

  serve: Serve = (request, answer) =>
    this.answerRequest(request, answer, (token, reply) => {
      if (request.method === 'POST') this.postToV3(request, token, reply)
      else reply(this.read(request.path, toEntity))
    })

  serveV2: Serve = (request, answer) => {
    const send = Number(request.headers[SEND_FIELD])
    if (request.method === 'POST') this.onV2Request(send)
    this.answerRequest(request, answer, (token, reply) =>
      reply(
        request.method === 'POST' ? this.postToV2(request, { token, send }) : this.read(request.path, toFlat),
      ),
    )
  }

  private answerRequest(
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

  /** Writes a mark as another program that does not use the adapter. */
  writeAsOtherProgram(key: string): void {
    const [learner = '', event = ''] = key.split(' ')
    const name = `other${(this.idCount += 1)}`
    const values = { learner, event, code: guid(8, 1), minutesLate: null, comment: name }
    this.store(key, this.toMark(values, undefined), name, { token: 'other', send: undefined })
  }

  private postToV3(
    { path, headers, body }: ServiceRequest,
    token: string,
    reply: (reply: ServiceReply) => void,
  ): void {
    const [, boundary] = /boundary=(\S+)/.exec(headers['content-type'] ?? '') ?? []
    if (boundary === undefined && !path.endsWith('$batch'))
      reply(this.postRecord(JSON.parse(body) as Posted, token))
    else if (!path.endsWith('$batch')) reply(failure(404, 'there is no such address'))
    else if (boundary === undefined) {
      const { requests } = JSON.parse(body) as { readonly requests: readonly BatchedPost[] }
      this.postEach(requests, token, (answers) => reply(toJsonReply(answers)))
    } else
      this.postEach(readParts(body, boundary), token, (answers) =>
        reply(toMultipartReply(answers, `reply_${guid(9, (this.idCount += 1))}`)),
      )
  }

  /** Applies the records of a batch one after another, even if the connection breaks. */
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
        answers.push({ id: request.id, ...this.postRecord(request.body, token) })
        next()
      }
      if (this.habits.paceMs === 0) act()
      else this.world.after(this.actor, this.habits.paceMs, act)
    }
    next()
  }

  private postRecord(posted: Posted, token: string): ServiceReply {
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

  /** Applies a flat record. `record` is `undefined` if it could not be decoded. */
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

  /** Applies a write and returns the mark as the reply shows it. */
  private write({ recordedOn, ...values }: WrittenValues, writer: Writer): Mark | 'invalid' | 'conflict' {
    const { learner, event, minutesLate, comment } = values
    const key = `${learner} ${event}`
    const name = (comment ?? '').split(' ')[0] ?? ''
    if (name.startsWith('bad')) return 'invalid'
    if (this.habits.onExisting === 'conflict' && (this.marks.get(key) ?? []).length > 0) return 'conflict'
    const mark = this.store(key, this.toMark(values, recordedOn), name, writer)
    const isEchoed = this.habits.values.echo === 'posted'
    return isEchoed ? { ...mark, minutesLate, comment, recordedOn: recordedOn ?? mark.recordedOn } : mark
  }

  private toMark(
    values: Omit<Mark, 'externalId' | 'present' | 'absent' | 'recordedOn'>,
    recordedOn: number | undefined,
  ): Mark {
    const nowMs = Math.round(START_MS + this.world.nowMs)
    const { stored } = storeValues(this.habits.values, { ...values, recordedOn }, nowMs)
    return { ...values, ...stored, externalId: guid(1, (this.idCount += 1)), present: true, absent: false }
  }

  /** Stores a mark and returns it with its final id. */
  private store(key: string, mark: Mark, name: string, writer: Writer): Mark {
    const before = this.marks.get(key) ?? []
    const kept = this.earlierMarks.get(key) ?? []
    kept.push({ untilMs: this.world.nowMs, marks: before })
    this.earlierMarks.set(key, kept)
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
    this.world.log(
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
      (this.earlierMarks.get(key) ?? []).find(({ untilMs }) => untilMs > atMs)?.marks ??
      this.marks.get(key) ??
      []
    return { status: 200, body: JSON.stringify({ value: marks.map(show) }) }
  }
}

/** A request inside a batch, in the form that both batch formats are decoded to. */
interface BatchedPost {
  readonly id: string
  readonly body: Posted
}

type BatchAnswer = ServiceReply & { readonly id: string }

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

/** Returns the GUID that begins with the digits of `kind` and ends in the digits of `number`. */
export function guid(kind: number, number: number): string {
  return `${String(kind).padStart(8, '0')}-0000-4000-8000-${String(number).padStart(12, '0')}`
}
