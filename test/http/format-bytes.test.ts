import { expect, test } from 'vitest'

import { formatBytes } from '../../src/http/body.ts'

test.each([
  [0, '0 bytes'],
  [1_023, '1023 bytes'],
  [1_024, '1 KiB'],
  [65_536, '64 KiB'],
  [65_537, '64.1 KiB'],
  [1_048_576, '1 MiB'],
  [1_048_577, '1.1 MiB'],
  [1_258_291, '1.2 MiB'],
  [33_554_432, '32 MiB'],
])('%i bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})
