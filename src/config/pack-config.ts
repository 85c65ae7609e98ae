import type { Config } from './schema.ts'
import { Secret } from './secret.ts'

/** A checked configuration as plain values, secrets among them: for another process of the adapter and for nothing else. */
export interface PackedConfig {
  readonly packed: unknown
}

/** Packs a configuration for a channel that copies plain values. */
export function packConfig(config: Config): PackedConfig {
  return { packed: mapValues(config, packValue) }
}

/** The configuration that was packed, by the same version of the program. */
export function unpackConfig({ packed }: PackedConfig): Config {
  return mapValues(packed, unpackValue) as Config
}

/** What stands for a value in place of its members; undefined: its members are mapped. */
type Replace = (value: object) => unknown

const packValue: Replace = (value) => {
  if (value instanceof Secret) return { $type: 'secret', text: value.reveal() }
  return value instanceof URL ? { $type: 'url', text: value.href } : undefined
}
const unpackValue: Replace = (value) => {
  if (!('$type' in value && 'text' in value && typeof value.text === 'string')) return undefined
  return value.$type === 'secret' ? new Secret(value.text) : new URL(value.text)
}

function mapValues(value: unknown, replace: Replace): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => mapValues(item, replace))
  return (
    replace(value) ??
    Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapValues(item, replace)]))
  )
}
