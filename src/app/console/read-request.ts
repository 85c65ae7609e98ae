import type { ReadableRequest } from '../../console/data/index-records.ts'
import { createSlicing, runInSlices } from '../../http/slices.ts'
import { decodeBatchInSteps, decodeRecordBytes, noBatchLimits, readBoundary } from '../../v2/index.ts'
import { decodeStoredRequest } from '../../writes/stored-request.ts'

const slicing = createSlicing()

export async function readRequest(payload: Uint8Array): Promise<ReadableRequest> {
  const { request, body } = decodeStoredRequest(payload)
  const { contentType } = request
  if (request.kind === 'record') {
    const { record } = decodeRecordBytes(body, contentType, noBatchLimits)
    return { boundary: undefined, records: [idsOf(record, undefined)] }
  }
  const steps = decodeBatchInSteps(body, contentType, { limits: noBatchLimits })
  const { parts } = await runInSlices(steps, slicing.open())
  const records = parts.map(({ record, contentId }) => idsOf(record, contentId))
  return { boundary: readBoundary(contentType), records }
}

const idsOf = (
  record: { readonly Learner: string; readonly AttendableEvent: string } | undefined,
  contentId: string | undefined,
) => ({ contentId, learner: record?.Learner, event: record?.AttendableEvent })
