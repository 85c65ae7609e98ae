import { AdapterError } from '../errors.ts'

/**
 * A query option that cannot be read, or that does not fit the entity type it is asked of: code `ADP_QUERY`, status
 * 400. The message says what was expected and repeats no literal of the query.
 */
export class QueryError extends AdapterError {
  /** Index of the offending character in the percent-decoded text of the option, from 0; also `at.offset`. */
  readonly position: number

  constructor(message: string, position: number) {
    super('ADP_QUERY', `${message} (character ${position})`, { at: { offset: position } })
    this.position = position
  }
}
