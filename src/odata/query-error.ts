import { AdapterError } from '../errors.ts'

/**
 * The error for a query option or path that cannot be parsed or does not fit its entity type (`ADP_QUERY`, 400). The message never repeats
 * a literal. `remedy` says what to change in the query.
 */
export class QueryError extends AdapterError {
  /** Index of the offending character, counted from 0. Also available as `at.offset`. */
  readonly position: number
  /** The query option whose value contains `position`, such as `$filter`, also available as `at.path`. `undefined` outside options. */
  readonly option: string | undefined
  readonly #fault: string
  readonly #remedy: string

  constructor(fault: string, position: number, option?: string, remedy = 'Correct the query') {
    const place = option === undefined ? `character ${position}` : `${option}, character ${position}`
    const at = option === undefined ? { offset: position } : { offset: position, path: option }
    super('ADP_QUERY', `${fault} (${place}). Nothing was read or changed. ${remedy}.`, { at })
    this.position = position
    this.option = option
    this.#fault = fault
    this.#remedy = remedy
  }

  inOption(option: string): QueryError {
    return new QueryError(this.#fault, this.position, option, this.#remedy)
  }

  movedTo(position: number): QueryError {
    return new QueryError(this.#fault, position, this.option, this.#remedy)
  }
}

/** Runs `work`, and adds the name of the option to a `QueryError` that `work` throws. */
export function inOption<T>(option: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof QueryError ? error.inOption(option) : error
  }
}
