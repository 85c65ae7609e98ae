import { randomUUID } from 'node:crypto'
import { createBatchEncoder, decodeBatch, encodeMismatch } from '../../v2/index.ts'
import type { PartReply } from '../../v2/index.ts'
import { changeReply } from '../differences/reply-change.ts'
import type { Reply } from '../edge/reply.ts'
import type { ServiceRequest } from '../edge/request.ts'
import { transact } from '../store/database.ts'
import { layoutFor } from './legacy-form.ts'
import { writeFlat } from './write-flat.ts'
import type { FlatWriter } from './write-flat.ts'

/**
 * Answers the V2 `$batch` (service.md 4.2): one part for each record, in order, whatever became of the others. Where the ids
 * of header and body differ, the reply is one 200 without outcomes; the records are applied, or dropped where the form of V2 says so.
 * Errors: `AdapterError` for a broken envelope; nothing is applied then.
 */
export function answerBatch(writer: FlatWriter, request: ServiceRequest): Reply {
  const batch = decodeBatch(request.body, request.header('content-type'))
  const form = writer.school.legacyForm.current()
  if (!batch.idsAgree && form.mismatch === 'drop') return answerMismatch()
  // One transaction is faster; the records stay independent, since none of them throws.
  const parts = transact(writer.school.database, () =>
    batch.parts.map((part): PartReply => {
      const { status, json } = writeFlat(writer, part, part.metadata)
      const minimal = status === 201 && part.prefersMinimal
      return { ...part, status: minimal ? 204 : status, json: minimal ? undefined : json }
    }),
  )
  if (!batch.idsAgree) return answerMismatch()
  const changes = writer.school.differences.on('V2')?.reply ?? []
  const shown = changes.length === 0 ? parts : changeReply(changes, parts)
  const layout = layoutFor(form, request)
  const recordsUrl = layout === 'nested' ? writer.recordsUrl : undefined
  const encoder = createBatchEncoder(layout, randomUUID, form.msgtypeResponse, recordsUrl)
  const body = shown.map((part) => encoder.part(part)).join('') + encoder.close(batch.changesets.length)
  return { status: 200, headers: { 'Content-Type': encoder.contentType }, body }
}

function answerMismatch(): Reply {
  const { contentType, body } = encodeMismatch(randomUUID)
  return { status: 200, headers: { 'Content-Type': contentType }, body }
}
