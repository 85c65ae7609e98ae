import { expect, it } from 'vitest'

import { Findings } from '../../../src/compare/live/findings.ts'

it('counts the same difference of a record once, as of two errors with another text', () => {
  const findings = new Findings()
  for (const path of ['errors/Message', 'errors/Message', 'errors/ErrorCode'])
    findings.differ(path, 'value', 'text:other', 'text:other')
  findings.add(findings.comparison())
  expect(findings.comparison()).toMatchObject({
    verdict: 'differs',
    differences: [{ path: 'errors/Message' }, { path: 'errors/ErrorCode' }],
  })
})
