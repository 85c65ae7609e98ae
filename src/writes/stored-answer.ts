import type { StoredRecord } from '../journal/index.ts'
import type { PartReply } from '../v2/index.ts'
import type { PlannedRecord } from './plan.ts'
import { toPart } from './reply-part.ts'

/** A part of the reply as the journal keeps it: the status, a blank, and the JSON if there is any. */
export function encodeAnswer({ status, json }: Pick<PartReply, 'status' | 'json'>): string {
  return json === undefined ? String(status) : `${status} ${json}`
}

/** The part of the reply of a record that was answered before; undefined: it was not. */
export function decodeAnswer(planned: PlannedRecord, stored: StoredRecord): PartReply | undefined {
  const { answer } = stored
  if (answer === undefined) return undefined
  const end = answer.indexOf(' ')
  if (end < 0) return toPart(planned.answering, Number(answer), undefined)
  return toPart(planned.answering, Number(answer.slice(0, end)), answer.slice(end + 1))
}
