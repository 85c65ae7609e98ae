import { expect, test } from 'vitest'

import { createIdentities } from '../../../src/sandbox/identity.ts'
import { createCodeTable } from '../../../src/sandbox/seed/codes.ts'

const table = createCodeTable(createIdentities(1))

test.each([
  // These are the codes of England from 19 August 2024 (service-facts).
  ['present', '/ \\ L K V P W B'],
  ['absent', 'C C1 C2 M J1 S T R I E G N O U'],
  ['notCounted', 'D X Q Y1 Y2 Y3 Y4 Y5 Y6 Y7'],
  ['system', 'Z # -'],
])('the code table defines all codes of the kind "%s"', (category, codes) => {
  for (const code of codes.split(' ')) expect(table.named(code)).toMatchObject({ category, visible: true })
})

test('the code table links a code of the school to its statutory code', () => {
  expect(table.named('I01').statutoryId).toBe(table.named('I').statutoryId)
  expect(table.named('#W').statutoryId).toBe(table.named('#').statutoryId)
  expect(table.codes.filter(({ visible }) => !visible).map(({ code }) => code)).toEqual(['H', 'J', 'Y'])
})
