import { Client } from 'pg'

import type { FailpointKind } from './failpoint.ts'

const commit = /^\s*commit\b/i

/** Reports the commits of every PostgreSQL connection of this thread. A commit is reported as done when the server has confirmed it. */
export function watchPostgres(hit: (kind: FailpointKind) => void): void {
  const original = Reflect.get(Client.prototype, 'query') as (...parameters: unknown[]) => unknown
  const watched = function (this: Client, ...parameters: unknown[]): unknown {
    const [query] = parameters
    const text = typeof query === 'object' && query !== null && 'text' in query ? query.text : query
    if (typeof text !== 'string' || !commit.test(text)) return original.apply(this, parameters)
    hit('beforeCommit')
    const last = parameters.at(-1)
    if (typeof last === 'function') {
      const onResult = (...results: unknown[]): void => {
        hit('afterCommit')
        Reflect.apply(last, undefined, results)
      }
      return original.apply(this, [...parameters.slice(0, -1), onResult])
    }
    const result = original.apply(this, parameters)
    if (!(result instanceof Promise)) return result
    return result.then((value: unknown) => {
      hit('afterCommit')
      return value
    })
  }
  Object.assign(Client.prototype, { query: watched })
}
