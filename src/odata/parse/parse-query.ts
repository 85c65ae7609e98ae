import type { Expr, QueryOptions } from '../ast.ts'
import { Cursor, type QueryLimits } from './cursor.ts'
import { findSystemOption, nameOption, type SystemOption } from './option-names.ts'
import { parseFilter } from './parse-filter.ts'
import { parseOptionAt } from './parse-options.ts'
import { QueryError } from '../query-error.ts'
import { splitQuery, type RawOption, type SplitQueryOptions } from './split-query.ts'

/** The options of one request. */
export interface RequestQuery {
  readonly options: QueryOptions
  /** Options that are neither system options nor aliases, in their order, repetitions included. */
  readonly custom: readonly RawOption[]
}

const none: ReadonlySet<number> = new Set()

/** Runs `parse`, so that a fault names the option it is in. */
function inOption<T>(option: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw error instanceof QueryError ? error.inOption(option) : error
  }
}

function parseSystemOption(
  option: SystemOption,
  text: string,
  limits: QueryLimits,
  encodedSemicolons: ReadonlySet<number>,
): QueryOptions {
  const cursor = new Cursor(text, limits, encodedSemicolons)
  if (!option.endsWith('token')) cursor.skipBlanks()
  const parsed = parseOptionAt(cursor, option)
  cursor.expectEnd('the end of the option')
  return parsed
}

/**
 * Reads a raw query string, without its `?`. System options are known in any case, with or without `$` (OData 4.01);
 * one that is given twice, in whatever spelling, is an error, and so is an unknown name with `$`. `@name=…` is a
 * parameter alias; every other name is a custom option, which the reader of `custom` may take or leave.
 *
 * @throws QueryError (`ADP_QUERY`, 400) with the position in the decoded value of `option`; 0 where the option itself
 * is the fault; in the raw string, and without an option, for one that has no value
 */
export function parseQuery(query: string, limits: QueryLimits & SplitQueryOptions = {}): RequestQuery {
  const seen = new Set<string>()
  const aliases = new Map<string, Expr>()
  const custom: RawOption[] = []
  let options: QueryOptions = {}
  for (const raw of splitQuery(query, limits)) {
    const { name, value, position, encodedSemicolons = none } = raw
    // $levels belongs into $expand only.
    const found = findSystemOption(name)
    const system = found === 'levels' ? undefined : found
    if (system === undefined && !name.startsWith('@')) {
      if (name.startsWith('$'))
        throw new QueryError('The system query option is not known', 0, nameOption(name))
      custom.push(raw)
      continue
    }
    const key = system ?? name
    if (value === undefined) throw new QueryError('Expected "=" after the option', position + name.length)
    if (seen.has(key)) throw new QueryError('The option is given twice', 0, nameOption(name))
    seen.add(key)
    if (system === undefined)
      aliases.set(
        name.slice(1),
        inOption(name, () => parseFilter(value, limits)),
      )
    else
      options = {
        ...options,
        ...inOption(`$${system}`, () => parseSystemOption(system, value, limits, encodedSemicolons)),
      }
  }
  return { options: aliases.size > 0 ? { ...options, aliases } : options, custom }
}
