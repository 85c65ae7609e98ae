import { parseConfig } from '../../src/config/index.ts'
import { AdapterError } from '../../src/errors.ts'

export const upstreams = { v3: { baseUrl: 'http://v3.test' } }

/** Returns `target: message` for each fault. The list is empty for a valid configuration. */
export function faultsOf(input: unknown): string[] {
  try {
    parseConfig(input)
    return []
  } catch (error) {
    if (!(error instanceof AdapterError)) throw error
    return error.details.map(({ target, message }) => `${target ?? ''}: ${message}`)
  }
}
