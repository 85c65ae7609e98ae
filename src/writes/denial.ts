import { AdapterError } from '../errors.ts'
import type { PostOutcome, UpstreamError } from '../v3/index.ts'
import type { FirstStep } from './first-step.ts'

/** True for 401 and 403: the credentials, not the record, are the cause. */
export function isDenial(error: UpstreamError): boolean {
  return error.status === 401 || error.status === 403
}

/** The error of a request whose credentials V3 denied before it accepted anything: `ADP_TOKEN` or `ADP_FORBIDDEN`, in V3's words. */
export function toDenialError(denial: UpstreamError): AdapterError {
  const text = denial.entries[0]?.message ?? ''
  const message = text === '' ? `The service denied the credentials (${denial.status}).` : text
  return new AdapterError(denial.status === 401 ? 'ADP_TOKEN' : 'ADP_FORBIDDEN', message)
}

/** The outcome of a record whose credentials were denied; one that may have been applied before stays unknown. */
export function deniedOutcome(first: FirstStep): Extract<PostOutcome, { kind: 'unknown' | 'notApplied' }> {
  return first === 'readBack'
    ? { kind: 'unknown', reason: 'connectionLost' }
    : { kind: 'notApplied', reason: 'stopped', retryAfterMs: undefined }
}
