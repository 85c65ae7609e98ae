import { expect, it } from 'vitest'

import { encodeErrorArray } from '../../../src/v2/errors/error-array.ts'

it('service.md 7: writes the errors of one record with one SequenceID', () => {
  const id = '0f1e2d3c-4b5a-4697-8877-665544332211'
  const errors = [
    { code: 'ATT_VAL_2', message: 'The "event" does not exist.' },
    { code: 'ATT_VAL_3', message: 'The code does not exist.' },
  ]
  expect(encodeErrorArray(errors, id)).toBe(
    `[{"Message":"The \\"event\\" does not exist.","ErrorCode":"ATT_VAL_2","ResourceIdentifier":"","SequenceID":"${id}"},` +
      `{"Message":"The code does not exist.","ErrorCode":"ATT_VAL_3","ResourceIdentifier":"","SequenceID":"${id}"}]`,
  )
  expect(encodeErrorArray([], id)).toBe('[]')
})
