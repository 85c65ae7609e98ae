import { attendanceV2Model } from '../model/attendance-v2.ts'
import { toServiceDocument, writeCsdlJson, writeEdmx } from '../odata/index.ts'

/** Media types of `$metadata`, the default one first. */
export const metadataTypes = ['application/xml', 'application/json'] as const

/** `$metadata` of the obsolete V2 attendance service: the flat type in `AttendanceService.Models.OData` (service.md 9.3). */
export function writeLegacyMetadata(type: (typeof metadataTypes)[number]): string {
  return type === 'application/json' ? writeCsdlJson(attendanceV2Model) : writeEdmx(attendanceV2Model)
}

/** The V2 service document as JSON; `metadataUrl` is the absolute address of its `$metadata`, undefined: the document has no context. */
export function writeLegacyServiceDocument(metadataUrl: string | undefined): string {
  const { value, ...context } = toServiceDocument(attendanceV2Model, metadataUrl ?? '')
  return JSON.stringify(metadataUrl === undefined ? { value } : { ...context, value })
}
