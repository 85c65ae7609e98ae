import { QueryError } from '../../src/odata/query-error.ts'

/** Returns the message and position of the `QueryError` that `run` throws. Fails the test if there is none. */
export function faultOf(run: () => unknown): { readonly message: string; readonly position: number } {
  try {
    run()
  } catch (error) {
    if (error instanceof QueryError)
      return {
        message: error.message.replace(/ \([^()]*character \d+\)\. .*$/, ''),
        position: error.position,
      }
    throw error
  }
  throw new TypeError('Expected a QueryError')
}
