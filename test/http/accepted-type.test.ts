import { expect, test } from 'vitest'
import { acceptedType } from '../../src/http/media-type.ts'

const xml = 'application/xml'
const json = 'application/json'

test.each([
  [undefined, xml],
  ['', xml],
  ['*/*', xml],
  [json, json],
  ['Application/JSON;odata.metadata=minimal', json],
  ['application/json;q=0.5, application/xml;q=0.9', xml],
  ['application/xml;q=0.1, */*', json],
  ['application/*;q=0.2, application/xml;q=0', json],
  ['text/html, application/xml;q=0.9, */*;q=0.8', xml],
  ['text/html', undefined],
  ['application/json;q=0', undefined],
])('%j accepts %s', (accept, expected) => {
  expect(acceptedType(accept, [xml, json])).toBe(expected)
})
