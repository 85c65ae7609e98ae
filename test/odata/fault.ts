import { QueryError } from '../../src/odata/query-error.ts'

/** The fault that `run` ends with, as `message` and `position`; fails the test where there is none of that kind. */
export function faultOf(run: () => unknown): { readonly message: string; readonly position: number } {
  try {
    run()
  } catch (error) {
    if (error instanceof QueryError)
      return { message: error.message.replace(/ \([^()]*\)$/, ''), position: error.position }
    throw error
  }
  throw new TypeError('Expected a QueryError')
}
