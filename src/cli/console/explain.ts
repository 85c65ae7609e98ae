import { toMapping } from '../../app/partners.ts'
import type { OpenedConsoleData } from '../../app/console/open-console-data.ts'
import type { Config } from '../../config/index.ts'
import type { Explained, ExplainedField } from '../../console/ports.ts'
import { AdapterError } from '../../errors.ts'
import { createSlicing, runInSlices } from '../../http/slices.ts'
import { toV3Record } from '../../translate/index.ts'
import { decodeBatchInSteps, decodeRecordBytes, noBatchLimits, type RecordFault } from '../../v2/index.ts'
import { encodeRecord } from '../../v3/record.ts'
import { decodeStoredRequest } from '../../writes/stored-request.ts'
import { findPartner } from '../target.ts'

/** The rule for a member. `from` is the member that supplies the value, or `undefined` if no single member does. */
interface Rule {
  readonly from?: string
  readonly rule: string
}

/** The rules of `toV3Record`, by the path of the member in the V3 body (service.md 9, rule 3). */
const bodyRules: Readonly<Record<string, Rule>> = {
  ExternalID: { rule: 'all zero, so that the service assigns an id' },
  Present: { from: 'Present', rule: 'as it is' },
  Absent: { from: 'Absent', rule: 'as it is' },
  RecordedOn: { rule: 'time of receipt; with unmappedFields: pass, the value that the client gave' },
  ChangeProcessName: {
    rule: 'changeProcessName of the partner; with unmappedFields: pass, the value that the client gave',
  },
  AttendableEventStart: { rule: 'as the client gave it (unmappedFields: pass)' },
  'RecordedBy/ExternalID': { rule: 'as the client gave it (unmappedFields: pass)' },
  'RecordedBy/Type': { rule: 'constant' },
  'Attendee/ExternalID': { from: 'Learner', rule: 'as it is' },
  'Attendee/Type': { rule: 'constant' },
  'Event/ExternalID': { from: 'AttendableEvent', rule: 'as it is' },
  'Event/Type': { rule: 'v3.eventType of the partner' },
  'AttendanceCode/ExternalID': { from: 'SchoolAttendanceCode', rule: 'as it is' },
  'AttendanceCode/Type': { rule: 'v3.codeType of the partner' },
  'Qualifier/MinutesLate': { from: 'MinutesLate', rule: 'as it is; a missing member stays missing' },
  'Qualifier/Comment': { from: 'Comment', rule: 'as it is; a missing member stays missing' },
}

const echo = "the value in V3's response, else the posted value"

/** The rules of `toFlatReply` and of the errors of V2, by the name of the member in the reply. */
const replyRules: Readonly<Record<string, Rule>> = {
  '@odata.context': { rule: 'the address of the request' },
  '@odata.type': { rule: 'constant, for odata.metadata=full' },
  ExternalID: { from: 'ExternalID', rule: 'the id that V3 assigned' },
  Present: { from: 'Present', rule: echo },
  Absent: { from: 'Absent', rule: echo },
  RecordedOn: { from: 'RecordedOn', rule: echo },
  ChangeProcessName: { from: 'ChangeProcessName', rule: echo },
  AttendableEventStart: { from: 'AttendableEventStart', rule: `${echo}, else null` },
  RecordedBy: { from: 'RecordedBy/ExternalID', rule: `${echo}, else null` },
  Learner: { from: 'Attendee/ExternalID', rule: echo },
  AttendableEvent: { from: 'Event/ExternalID', rule: echo },
  SchoolAttendanceCode: { from: 'AttendanceCode/ExternalID', rule: echo },
  MinutesLate: { from: 'Qualifier/MinutesLate', rule: `${echo}, else null` },
  Comment: { from: 'Qualifier/Comment', rule: `${echo}, else null` },
  AttendanceHistorys: { rule: 'empty, as in replies of V2 to a write' },
  Message: { from: 'message', rule: 'the text for the code; errorMessages of the partner overrides it' },
  ErrorCode: { from: 'code', rule: "V3's code, as it is" },
  ResourceIdentifier: { rule: 'empty, as in replies of V2' },
  SequenceID: { rule: 'a new guid for each record' },
}

/** The rules for error codes: for the codes of V2 that replace codes of V3 (`v2ErrorRules`), and for the codes of the adapter itself. */
const codeRules: readonly (readonly [code: RegExp, rule: string])[] = [
  [/^ATT_VAL_2$/, "the code, target or message of V3's error names the event"],
  [/^ATT_VAL_3$/, "the code, target or message of V3's error names the attendance code"],
  [/^ADP_[A-Z0-9_]+$/, 'a code of the adapter (docs/replies.md)'],
]

const reasons = {
  onV2: 'V2 served this batch, so Markbridge sent none of it to V3.',
  gone: 'The request is no longer stored, since its retention period is over (journal.replayForMs).',
  key: 'The request cannot be decrypted, since its key is not among journal.keys.',
  damaged: 'The stored request is damaged and cannot be read.',
} as const

const slicing = createSlicing()

/**
 * Explains a record: the rule behind each member of its V3 body, under the partner's current settings, and the rule behind each member of
 * its stored reply. Returns `undefined` if there is no such record. Values are masked unless `isRevealed` is set.
 */
export async function explainRecord(
  data: Pick<OpenedConsoleData, 'readKept'>,
  config: Config,
  {
    batch,
    position,
    isRevealed,
  }: { readonly batch: number; readonly position: number; readonly isRevealed: boolean },
): Promise<Explained | undefined> {
  const read = await data.readKept(batch, position)
  if (read === undefined) return undefined
  if (typeof read === 'string') return { notes: [reasons[read]], fields: [], reply: undefined }
  const { request, body } = decodeStoredRequest(read.payload)
  const own = findPartner(config, read.partner)
  const part =
    request.kind === 'record'
      ? decodeRecordBytes(body, request.contentType, noBatchLimits)
      : (
          await runInSlices(
            decodeBatchInSteps(body, request.contentType, { limits: noBatchLimits }),
            slicing.open(),
          )
        ).parts[position]
  if (part === undefined) return undefined
  const reply = explainReply(read.answer, isRevealed)
  if (part.record === undefined) return { notes: toNotes(part.faults), fields: [], reply }
  const { record, faults } = toV3Record(part.record, toMapping(own), new Date(read.receivedMs).toISOString())
  if (record === undefined) return { notes: toNotes(faults), fields: [], reply }
  const members: unknown = JSON.parse(encodeRecord(record, own.v3.bodyProfile))
  const unmapped = (part.record.unmapped ?? []).length
  return {
    notes: [
      'The rules shown are those of the current settings of the partner, which may have changed since the record was posted.',
      ...(unmapped === 0
        ? []
        : [`Further members of the V2 record: ${unmapped} (unmappedFields: ${own.unmappedFields}).`]),
    ],
    fields: leavesOf(members).map(([path, value]) => toField(path, value, bodyRules[path], isRevealed)),
    reply,
  }
}

/** Explains a stored part of the reply. `encodeAnswer` in `writes/reply` defines the form of `answer`. */
function explainReply(answer: string | undefined, isRevealed: boolean): Explained['reply'] {
  if (answer === undefined) return undefined
  const [, status, json] = /^(\d+)(?: ([^]*))?$/.exec(answer) ?? []
  const members: unknown = json === undefined ? {} : JSON.parse(json)
  const fields = leavesOf(members).map(([path, value]) => {
    const name = path.slice(path.lastIndexOf('/') + 1)
    const known = name === 'ErrorCode' ? codeRules.find(([code]) => code.test(String(value))) : undefined
    return toField(path, value, known ? { rule: known[1] } : replyRules[name], isRevealed)
  })
  return { status: Number(status), fields }
}

const toNotes = (faults: readonly RecordFault[] = []): readonly string[] => [
  'The adapter refused the record, so there is no body for V3.',
  ...faults.map(({ code, message }) => `${code}: ${message}`),
]

function toField(path: string, value: unknown, rule: Rule | undefined, isRevealed: boolean): ExplainedField {
  if (rule === undefined)
    throw new AdapterError(
      'ADP_INTERNAL',
      `The console has no rule for ${path}. The record is not shown. Report a bug.`,
    )
  const isClients = rule.from !== undefined || rule.rule.includes('the client gave')
  const shown = isClients && !isRevealed ? maskOf(value) : JSON.stringify(value)
  return { path, from: rule.from, rule: rule.rule, value: shown, isMasked: isClients && !isRevealed }
}

function maskOf(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value !== 'string') return typeof value === 'boolean' ? 'true or false' : 'a number'
  return /^[0-9a-f-]{36}$/i.test(value) ? 'a guid' : 'a text'
}

function leavesOf(value: unknown, path = ''): readonly (readonly [string, unknown])[] {
  const isLeaf = typeof value !== 'object' || value === null || (Array.isArray(value) && value.length === 0)
  if (isLeaf) return [[path, value]]
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) =>
    leavesOf(member, path === '' ? name : `${path}/${name}`),
  )
}
