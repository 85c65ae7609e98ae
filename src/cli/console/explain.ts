import { toMapping } from '../../app/partners.ts'
import type { OpenedConsoleData } from '../../app/console/open-console-data.ts'
import type { Config } from '../../config/index.ts'
import type { Explained, ExplainedField } from '../../console/ports.ts'
import { AdapterError } from '../../errors.ts'
import { createSlicing, runInSlices } from '../../http/slices.ts'
import { toV3Record } from '../../translate/index.ts'
import {
  decodeBatchInSteps,
  decodeRecordBytes,
  type FlatRecord,
  noBatchLimits,
  type RecordFault,
} from '../../v2/index.ts'
import { encodeRecord } from '../../v3/record.ts'
import { decodeStoredRequest } from '../../writes/stored-request.ts'
import { findPartner } from '../target.ts'

/** Where a member of a V3 body comes from: a member of the V2 record, or `undefined` for what no client has written. */
interface Rule {
  readonly from?: keyof FlatRecord
  readonly rule: string
}

/** The rules of `translate/record`, by the path of the member that each makes (service.md 9, rule 3). */
const rules: Readonly<Record<string, Rule>> = {
  ExternalID: { rule: 'all zero, so that the service assigns an id' },
  Present: { from: 'Present', rule: 'as it is' },
  Absent: { from: 'Absent', rule: 'as it is' },
  RecordedOn: { rule: 'time of receipt; with unmappedFields: pass the one that the client gave' },
  ChangeProcessName: {
    rule: 'changeProcessName of the partner; with unmappedFields: pass the one that the client gave',
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

const reasons = {
  onV2: 'V2 served this batch, so V3 got nothing of it from Markbridge.',
  gone: 'The request is no longer kept: its time is over (journal.replayForMs).',
  key: 'The key that the request is encrypted with is not among journal.keys.',
  damaged: 'The request that is kept cannot be read.',
} as const

const slicing = createSlicing()

/**
 * Explains which rule made which member of the V3 body of a record, by the settings of its partner as they are now. Undefined: there is no such
 * record. Values are masked unless `isRevealed`.
 */
export async function explainRecord(
  data: Pick<OpenedConsoleData, 'readPayload'>,
  config: Config,
  {
    batch,
    position,
    isRevealed,
  }: { readonly batch: number; readonly position: number; readonly isRevealed: boolean },
): Promise<Explained | undefined> {
  const read = await data.readPayload(batch)
  if (read === undefined) return undefined
  if (typeof read === 'string') return { kind: 'unreadable', why: reasons[read] }
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
  if (part.record === undefined) return { kind: 'refused', faults: toFaults(part.faults) }
  const { record, faults } = toV3Record(part.record, toMapping(own), new Date(read.receivedMs).toISOString())
  if (record === undefined) return { kind: 'refused', faults: toFaults(faults) }
  const members: unknown = JSON.parse(encodeRecord(record, own.v3.bodyProfile))
  return {
    kind: 'posted',
    fields: leavesOf(members).map(([path, value]) => toField(path, value, isRevealed)),
    unmapped: (part.record.unmapped ?? []).length,
    unmappedFields: own.unmappedFields,
  }
}

const toFaults = (faults: readonly RecordFault[] = []) =>
  faults.map(({ code, message }) => ({ code, message }))

function toField(path: string, value: unknown, isRevealed: boolean): ExplainedField {
  const rule = rules[path]
  if (rule === undefined) throw new AdapterError('ADP_INTERNAL', `Internal error: no rule for ${path}.`)
  const isClients = rule.from !== undefined || rule.rule.includes('the client gave')
  const shown = isClients && !isRevealed ? maskOf(value) : JSON.stringify(value)
  return { path, from: rule.from, rule: rule.rule, value: shown, isMasked: isClients && !isRevealed }
}

/** The form of a value, which does not tell it. */
function maskOf(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value !== 'string') return typeof value === 'boolean' ? 'true or false' : 'a number'
  return /^[0-9a-f-]{36}$/i.test(value) ? 'a guid' : 'a text'
}

/** The members of a document that are no objects, with their paths. */
function leavesOf(value: unknown, path = ''): readonly (readonly [string, unknown])[] {
  if (typeof value !== 'object' || value === null) return [[path, value]]
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) =>
    leavesOf(member, path === '' ? name : `${path}/${name}`),
  )
}
