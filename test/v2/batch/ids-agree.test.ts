import { describe, expect, it } from 'vitest'

import { idsAgree } from '../../../src/v2/batch/ids-agree.ts'

const ONE = '36522ad7-fc75-4b56-8c71-56071383e77b'
const TWO = '77162fcd-b8da-41ac-a9f8-9357efbbd621'

describe('idsAgree', () => {
  const rows: [what: string, header: string, delimiters: string[], agree: boolean][] = [
    ['the batch itself', `batch_${ONE}`, [`batch_${ONE}`, `changeset_${TWO}`], true],
    ['a changeset itself', `changeset_${TWO}`, [`batch_${ONE}`, `changeset_${TWO}`], true],
    [
      'the last changeset',
      `changeset_${TWO}`,
      [`batch_${ONE}`, `changeset_${ONE}`, `changeset_${TWO}`],
      true,
    ],
    [
      'the guid of a changeset after the other prefix',
      `batch_${TWO}`,
      [`batch_${ONE}`, `changeset_${TWO}`],
      true,
    ],
    ['the guid of the batch after the other prefix', `changeset_${ONE}`, [`batch_${ONE}`], true],
    ['a guid in another case', `batch_${ONE.toUpperCase()}`, [`batch_${ONE}`], true],
    ['a guid without prefix', ONE, [`batch_${ONE}`], true],
    ['another guid', `batch_${TWO}`, [`batch_${ONE}`, `changeset_${ONE}`], false],
    ['no guid, the same text', 'b', ['b'], true],
    ['no guid, another text', 'b', ['B', 'c'], false],
    ['no guid against a guid', 'b', [`batch_${ONE}`], false],
  ]
  it.each(rows)('batch-wire 3: the header names %s', (_, header, delimiters, agree) => {
    expect(idsAgree(header, delimiters)).toBe(agree)
  })
})
