import { refuseDomain } from '../edge/refusals.ts'
import type { Reply } from '../edge/reply.ts'
import type { ServiceRequest } from '../edge/request.ts'
import { readQuery } from '../query/read-query.ts'
import type { LearnerSet } from '../seed/documents/entity-sets.ts'
import { findLearnerSet, memberSets } from './learner-entities.ts'

/**
 * The gateway's refusal of a query on groups that reaches members whose own domain the token lacks. Every option counts, not
 * `$expand` alone: a filter or an order over members discloses as much of them as showing them does. Errors: `QueryError`.
 */
export function refuseMembers(set: LearnerSet, { principal, query }: ServiceRequest): Reply | undefined {
  if (set.subject !== 'group' || principal.domains === undefined || query === '') return undefined
  for (const name of namesIn(readQuery(query))) {
    const reached = name === '*' ? memberSets : [findLearnerSet(name)].filter((found) => found !== undefined)
    for (const { securityDomain } of reached) {
      const refusal = refuseDomain(principal, securityDomain)
      if (refusal !== undefined) return refusal
    }
  }
  return undefined
}

/** The properties that a query names at any depth; `*` where it asks for all. */
function* namesIn(node: unknown): Generator<string> {
  if (typeof node !== 'object' || node === null) return
  if ('kind' in node && node.kind === 'star') yield '*'
  if ('kind' in node && node.kind === 'property' && 'name' in node && typeof node.name === 'string')
    yield node.name
  const inside: Iterable<unknown> = node instanceof Map ? node.values() : Object.values(node)
  for (const value of inside) yield* namesIn(value)
}
