import { expect, it } from 'vitest'

import {
  metadataTypes,
  writeLegacyMetadata,
  writeLegacyServiceDocument,
} from '../../src/translate/legacy-documents.ts'

it('describes the flat type in XML and in JSON', () => {
  const [xml, json] = metadataTypes.map(writeLegacyMetadata)
  expect(xml).toContain('<Schema Namespace="AttendanceService.Models.OData"')
  const document = JSON.parse(json ?? '') as object
  expect(Object.keys(document)).toContain('AttendanceService.Models.OData')
})

it('writes the service document with a context or without one', () => {
  const url = 'https://adapter.example/V2/Attendance/$metadata'
  const value = [expect.objectContaining({ name: 'AttendanceRecords' })] as unknown
  expect(JSON.parse(writeLegacyServiceDocument(url))).toEqual({ '@odata.context': url, value })
  expect(JSON.parse(writeLegacyServiceDocument(undefined))).toEqual({ value })
})
