import { stringify } from 'yaml'

import type { Config } from './schema.ts'

/** The whole configuration with its defaults as YAML; secrets show as `[secret]`, addresses as text. */
export function printConfig(config: Config): string {
  return stringify(JSON.parse(JSON.stringify(config)))
}
