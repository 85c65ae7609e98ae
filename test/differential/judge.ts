import { isDeepStrictEqual } from 'node:util'

import { type Exception, exceptions, type Pair } from './exceptions.ts'
import type { Read } from './grammar/read.ts'

/** The result of comparing two replies: equal, equal except for intended differences, or different. */
export type Verdict =
  | { readonly kind: 'equal' }
  | { readonly kind: 'excepted'; readonly by: readonly Exception[] }
  | { readonly kind: 'different'; readonly rest: Pair }

export function judge(pair: Pair, read: Read): Verdict {
  const by: Exception[] = []
  let rest = pair
  for (const exception of exceptions) {
    if (isDeepStrictEqual(rest.legacy, rest.adapter)) break
    const remaining = exception.removeFrom(rest, read)
    if (remaining === undefined) continue
    by.push(exception)
    rest = remaining
  }
  if (!isDeepStrictEqual(rest.legacy, rest.adapter)) return { kind: 'different', rest }
  return by.length === 0 ? { kind: 'equal' } : { kind: 'excepted', by }
}
