import { STATUS_CODES } from 'node:http'

import type { Config, PartnerConfig } from '../../config/index.ts'
import type { TriedReply } from '../../console/ports.ts'
import type { AdapterError } from '../../errors.ts'
import { createSlicing } from '../../http/slices.ts'
import { encodeError } from '../../proxy/error-reply.ts'
import { createBatchEncoder, encodeMismatch } from '../../v2/index.ts'
import type { PostOutcome } from '../../v3/index.ts'
import { planWrites } from '../../writes/plan.ts'
import { toReplyPart } from '../../writes/reply.ts'
import { toWriteRequest } from '../../writes/stored-request.ts'
import { batchLimitsOf, toPartner } from '../partners.ts'

const V3_ID = 'ffffffff-ffff-4fff-bfff-ffffffffffff'
const ADDRESS = 'http://adapter.example'
/** Returns a fixed id, because no client receives this reply. */
const newId = (): string => '00000000-0000-4000-8000-000000000000'

const accepted: PostOutcome = { kind: 'accepted', reply: { ExternalID: V3_ID } }
const entry = { code: 'ATT_VAL_3', message: '', target: undefined }
const refused: PostOutcome = { kind: 'refused', error: { status: 400, form: 'odata', entries: [entry] } }

const slicing = createSlicing()
/** The cost of encoding one part, in the units of `slices.spend`: the number of batch bytes that take the same time to decode. */
const PART_WORK = 1_024

/**
 * Returns the reply that a valid batch would get, with the functions that plan and encode real batches. Returns two forms of each part: one
 * if V3 accepts the record, and one if V3 refuses the record. Does not post or store records.
 */
export async function previewReply(
  config: Config,
  own: PartnerConfig,
  headers: Parameters<typeof toWriteRequest>[2],
  body: Buffer,
): Promise<TriedReply> {
  const partner = toPartner(own, undefined, undefined, config)
  const records = `${ADDRESS}/V2/Attendance/AttendanceRecords`
  const request = toWriteRequest('batch', partner, headers, { root: ADDRESS, records })
  const slices = slicing.open()
  const plan = await planWrites(request, body, partner, Date.now(), batchLimitsOf(config), slices)
  if (!plan.outcomesShown) {
    const mismatch = encodeMismatch(newId)
    return { head: headOf(200, mismatch.contentType), parts: [], end: mismatch.body, v3Id: V3_ID }
  }
  const encodeAll = async (outcome: PostOutcome) => {
    const { layout, msgtypeResponse, recordsUrl } = request
    const encoder = createBatchEncoder(layout, newId, msgtypeResponse, recordsUrl)
    const parts: string[] = []
    for (const planned of plan.records) {
      // A record that the adapter itself refuses is never posted, so its part is the same in both forms of the reply.
      const own = planned.record === undefined ? accepted : outcome
      parts.push(encoder.part(toReplyPart(planned, own, { ...request, newId })))
      if (slices.spend(PART_WORK)) await slices.next()
    }
    return { head: headOf(200, encoder.contentType), parts, end: encoder.close(plan.changesets) }
  }
  const [ifAccepted, ifRefused] = [await encodeAll(accepted), await encodeAll(refused)]
  const parts = plan.records.map(({ record }, at) => ({
    ifAccepted: record && ifAccepted.parts[at],
    otherwise: ifRefused.parts[at] ?? '',
  }))
  return { head: ifAccepted.head, parts, end: ifAccepted.end, v3Id: V3_ID }
}

export function previewRefusal(error: AdapterError): TriedReply {
  const head = headOf(error.status, 'application/json; charset=utf-8')
  return { head, parts: [], end: encodeError(error), v3Id: V3_ID }
}

const headOf = (status: number, contentType: string): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: ${contentType}\r\n\r\n`
