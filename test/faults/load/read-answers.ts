import { z } from 'zod'

import { decodeBatchReply, type ReplyPart } from '../../../src/v2/index.ts'
import type { Answer } from './history.ts'

/** A reply as it came, whole. */
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
 * Reads what each of `count` records was told. A reply that is not a batch reply tells the same of all of them. Two of that kind
 * hold no outcome of any record: 503 speaks of the request alone, not of what an earlier one with the same bytes has done; 504
 * with `ADP_OUTCOME_UNKNOWN`, or that of V2, says that the outcome cannot be given out at present.
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

/** The bytes between the delimiters of a batch reply, one character each; none of another reply. */
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

/** 429 and 503 say that nothing was applied; any other 5xx says nothing. */
function answerOf(status: number): Answer {
  if (status === 503 || status === 429) return { kind: 'notApplied' }
  return status >= 500 ? { kind: 'unknown' } : { kind: 'refused', status }
}
