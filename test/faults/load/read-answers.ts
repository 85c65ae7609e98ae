import { z } from 'zod'

import { decodeBatchReply, type ReplyPart } from '../../../src/v2/index.ts'
import type { Answer } from './history.ts'

export interface WholeReply {
  readonly status: number
  readonly contentType: string | undefined
  readonly body: Buffer
}

const flatRecord = z.object({
  ExternalID: z.unknown(),
  Learner: z.unknown(),
  AttendableEvent: z.unknown(),
  SchoolAttendanceCode: z.unknown(),
  Comment: z.unknown(),
})

/**
 * Reads the answer about each of `count` records. A reply that is not a batch reply gives all records the same answer. A 503 holds no
 * outcome of any record, because it describes only this request, and not an earlier request with the same bytes. A 504 with
 * `ADP_OUTCOME_UNKNOWN` or `ADP_V2_OUTCOME_UNKNOWN` holds none either, because the outcome is currently unavailable.
 */
export function readAnswers(reply: WholeReply, count: number): Answer[] {
  const { status, contentType, body } = reply
  if (status !== 200) {
    const answer = readWholeAnswer(reply)
    return Array.from({ length: count }, () => answer)
  }
  const { parts } = decodeBatchReply(body, contentType)
  if (parts.length !== count) throw new Error(`${parts.length} parts for ${count} records`)
  return parts.map(readPart)
}

/** Returns the text between the delimiters of a batch reply, one character per byte, or nothing for any other reply. */
export function partsOf({ status, contentType, body }: WholeReply): string[] {
  const boundary = /boundary="?([^";]+)/.exec(contentType ?? '')?.[1]
  if (status !== 200 || boundary === undefined) return []
  return body.toString('latin1').split(`--${boundary}`).slice(1, -1)
}

function readWholeAnswer({ status, body }: WholeReply): Answer {
  if (status === 503) return { kind: 'busy' }
  const isNoOutcome = status === 504 && /"ADP_(?:V2_)?OUTCOME_UNKNOWN"/.test(body.toString('latin1'))
  return isNoOutcome ? { kind: 'noOutcome' } : answerOf(status)
}

function readPart(part: ReplyPart): Answer {
  if (part.status === 409 && part.body.includes('"ADP_SUPERSEDED_UNKNOWN"')) return { kind: 'gaveWay' }
  if (part.status === 409 && part.body.includes('"ADP_SUPERSEDED"')) return { kind: 'superseded' }
  if (part.status !== 201) return answerOf(part.status)
  const record = flatRecord.parse(JSON.parse(part.body))
  const mark = {
    externalId: record.ExternalID,
    learner: record.Learner,
    event: record.AttendableEvent,
    code: record.SchoolAttendanceCode,
    comment: record.Comment,
  }
  return { kind: 'created', mark }
}

/**
 * Returns the answer that a status stands for. A 429 or 503 says that nothing was applied, and any other 5xx leaves the outcome unknown.
 */
function answerOf(status: number): Answer {
  if (status === 503 || status === 429) return { kind: 'notApplied' }
  return status >= 500 ? { kind: 'unknown' } : { kind: 'refused', status }
}
