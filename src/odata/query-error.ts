import { AdapterError } from '../errors.ts'

/**
 * A query option that cannot be read, or that does not fit the entity type it is asked of: code `ADP_QUERY`, status
 * 400. The message names the expected syntax and repeats no literal of the query.
 */
export class QueryError extends AdapterError {
  /** Index of the offending character, from 0; also `at.offset`. */
  readonly position: number
  /**
   * The option in whose percent-decoded value `position` lies, such as `$filter`; also `at.path`. Absent where the
   * caller handed in that text alone, and for faults of the raw query string around the options.
   */
  readonly option: string | undefined
  readonly #fault: string

  constructor(fault: string, position: number, option?: string) {
    const place = option === undefined ? `character ${position}` : `${option}, character ${position}`
    const at = option === undefined ? { offset: position } : { offset: position, path: option }
    super('ADP_QUERY', `${fault} (${place})`, { at })
    this.position = position
    this.option = option
    this.#fault = fault
  }

  /** The same fault, placed in a named option. */
  inOption(option: string): QueryError {
    return new QueryError(this.#fault, this.position, option)
  }

  /** The same fault, placed at another character. */
  movedTo(position: number): QueryError {
    return new QueryError(this.#fault, position, this.option)
  }
}

/** Runs `work`, so that a fault names the option it is in. */
export function inOption<T>(option: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof QueryError ? error.inOption(option) : error
  }
}
