import fc from 'fast-check'

import { createBrokenReads } from './broken-reads.ts'
import { createExpressions } from './expressions.ts'
import { createGoodReads } from './good-reads.ts'
import type { Reads } from './read.ts'
import type { Samples } from './samples.ts'

/** Generates reads, of which about two thirds are valid and one third is broken. */
export function createReads(samples: Samples): Reads {
  const expressions = createExpressions(samples)
  const good = createGoodReads(expressions, samples)
  return fc.oneof(
    { weight: 2, arbitrary: good },
    { weight: 1, arbitrary: createBrokenReads(good, expressions, samples) },
  )
}
