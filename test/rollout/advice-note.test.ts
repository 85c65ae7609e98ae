import { describe, expect, it } from 'vitest'

import { addAdviceNote, readAdviceNote } from '../../src/rollout/advice-note.ts'

describe('readAdviceNote', () => {
  it.each([
    ['first schools (pilot)', { verdict: 'ready', missing: [] }, false],
    ['', { verdict: 'ready', missing: [] }, true],
    ['the term begins', { verdict: 'not yet', missing: ['0 of 5 days.', 'A guard acted (twice).'] }, true],
  ] as const)(
    'returns the reason and the verdict that addAdviceNote stored: %j %j %j',
    (reason, advice, guard) => {
      const { verdict } = advice
      const read = readAdviceNote(addAdviceNote(reason, advice, guard))
      expect(read).toEqual({ reason, verdict, isDespite: verdict !== 'ready' })
    },
  )

  it.each(['V3 fails', 'V3 fails (advice: call me)', ''])(
    'returns no verdict for a text without a note: %j',
    (reason) => {
      expect(readAdviceNote(reason)).toEqual({ reason, verdict: undefined, isDespite: false })
    },
  )
})
