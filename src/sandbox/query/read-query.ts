import { parseQuery, QueryError } from '../../odata/index.ts'
import type { QueryOptions } from '../../odata/index.ts'

/** Options that can be checked and that the service does not offer. */
const refused = ['search', 'schemaversion'] as const

/** Limits far above those of real clients and far below those that take time. */
const limits = { maxLength: 32_768, maxDepth: 100 }

/**
 * Reads the query of a GET; `$` may be missing from an option (service-facts 13), other names are left alone.
 * Errors: `QueryError` with the position for faulty or unsupported syntax.
 */
export function readQuery(query: string): QueryOptions {
  const options = parseQuery(query, limits)
  for (const name of refused)
    if (options[name] !== undefined) throw new QueryError('The option is not supported', 0, `$${name}`)
  if (options.format !== undefined && !/^(json$|application\/json)/i.test(options.format))
    throw new QueryError('Only JSON is offered', 0, '$format')
  return options
}
