import { AdapterError, type ErrorLocation } from '../../../src/errors.ts'

export interface Fault {
  readonly code: string
  readonly at: ErrorLocation
}

/** Returns the fault that `run` throws. Any other error, or none, fails the test. */
export function faultOf(run: () => unknown): Fault {
  try {
    run()
  } catch (error) {
    if (error instanceof AdapterError) return { code: error.code, at: error.at }
    throw error
  }
  throw new Error('nothing was thrown')
}
