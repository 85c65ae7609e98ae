import type { Partner } from '../../partners/partner.ts'
import type { WriteRequest } from '../../writes/index.ts'
import { type Exchange, isGeneric, RECORDED_HOST } from './exchange.ts'

/** The request of a recorded write as the adapter would have taken it, under its own address. */
export function toWriteRequest(exchange: Exchange, kind: 'batch' | 'record', partner: Partner): WriteRequest {
  const { contentType, accept = '', prefer = '', target } = exchange
  const layout = partner.layout === 'auto' ? (isGeneric(exchange) ? 'nested' : 'flat') : partner.layout
  const root = target.slice(0, Math.max(0, target.search(/\/v2\//i)))
  const address = `http://${RECORDED_HOST}${root}/V2/Attendance`
  return {
    kind,
    contentType,
    serviceHosts: kind === 'record' ? undefined : partner.serviceHosts,
    context: `${address}/$metadata#AttendanceRecords/$entity`,
    layout: kind === 'record' ? 'flat' : layout,
    recordsUrl: layout === 'nested' || kind === 'record' ? `${address}/AttendanceRecords` : undefined,
    dataEnvelope: partner.dataEnvelope,
    msgtypeResponse: partner.msgtypeResponse,
    errorMessages: partner.errorMessages,
    prefer: kind === 'record' ? prefer : '',
    accept: kind === 'record' ? accept : '',
  }
}
