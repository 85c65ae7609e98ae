import { parseConfig } from '../../src/config/index.ts'
import { AdapterError } from '../../src/errors.ts'

export const upstreams = { v3: { baseUrl: 'http://v3.test' } }

/** `target: message` of each fault; empty for a configuration that is valid. */
export function faultsOf(input: unknown): string[] {
  try {
    parseConfig(input)
    return []
  } catch (error) {
    if (!(error instanceof AdapterError)) throw error
    return error.details.map(({ target, message }) => `${target ?? ''}: ${message}`)
  }
}
