import { readFile } from 'node:fs/promises'

import type * as z from 'zod'

import { AdapterError, describeFileError } from '../errors.ts'
import { readVariable } from './environment.ts'
import { checkValues, parseConfig, refuseConfig } from './parse.ts'
import type { Config } from './schema.ts'
import { resolveSecrets, Secret, type SecretSources } from './secret.ts'
import type { YamlFile } from './yaml.ts'

/** Values from the command line, which override the values of the configuration file. */
interface ConfigFlags {
  readonly v3?: string | undefined
  readonly v2?: string | undefined
  readonly port?: number | undefined
  readonly host?: string | undefined
  /** The address of the journal. The address is never printed, because it may contain a password. */
  readonly journal?: string | undefined
  readonly console?: number | undefined
}

interface LoadOptions {
  readonly onRead?: OnRead | undefined
  /** The sections whose secrets are read. Secrets of other sections become placeholders. Default: all sections. */
  readonly secretsOf?: readonly string[]
}

/** A callback that receives the path and the text of each file. The text is `undefined` if the file cannot be read. */
export type OnRead = (path: string, text: string | undefined) => void

/**
 * Loads the configuration from a YAML file, and then applies the flags. Resolves the secrets, which the file gives as `{ env: NAME }` or as
 * `{ file: path }`. Throws `ADP_CONFIGURATION` with every fault of the file, including its line and column if they are known. Calls
 * `onRead` for each file that is read, including the files of secrets.
 */
export async function loadConfig(
  path: string | undefined,
  flags: ConfigFlags = {},
  { onRead, secretsOf }: LoadOptions = {},
): Promise<Config> {
  const file = path === undefined ? noFile : await readFileAt(path, onRead)
  if (file.value === undefined && path !== undefined) throw refuseConfig(file.faults, path)
  const { value, faults } = await resolveSecrets(withFlags(file.value ?? {}, flags), {
    ...secretSources(onRead),
    sections: secretsOf,
  })
  return parseConfig(value, [...file.faults, ...faults], { path, positionOf: file.positionOf })
}

/** Loads a YAML file of any schema, with secrets as plain text and without defaults. Throws `ADP_CONFIGURATION` with every fault. */
export async function loadValues<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
): Promise<z.input<Schema>> {
  const file = await readFileAt(path)
  if (file.value === undefined) throw refuseConfig(file.faults, path)
  const { value, faults } = await resolveSecrets(file.value ?? {}, secretSources())
  const values = mapValues(value, (own) => (own instanceof Secret ? own.reveal() : undefined))
  checkValues(schema, values, { path, positionOf: file.positionOf }, [...file.faults, ...faults])
  return values as z.input<Schema>
}

const secretSources = (onRead?: OnRead): SecretSources => ({
  env: readVariable,
  file: async (path) => {
    const text = await readFile(path, 'utf8').catch(() => undefined)
    onRead?.(path, text)
    return text
  },
})

const noFile: YamlFile = { value: {}, faults: [], positionOf: () => undefined }

/** Reads a YAML file. Loads the YAML parser on demand, because loading the parser takes longer than most commands without a file. */
async function readFileAt(path: string, onRead?: OnRead): Promise<YamlFile> {
  const text = await readText(path, onRead)
  const { readYaml } = await import('./yaml.ts')
  return readYaml(text)
}

async function readText(path: string, onRead?: OnRead): Promise<string> {
  try {
    const text = await readFile(path, 'utf8')
    onRead?.(path, text)
    return text
  } catch (cause) {
    onRead?.(path, undefined)
    throw new AdapterError(
      'ADP_CONFIGURATION',
      `The configuration file ${path} cannot be read: ${describeFileError(cause)}. Nothing was changed. Check the path and the permissions.`,
      { at: { path }, cause },
    )
  }
}

function withFlags(input: unknown, flags: ConfigFlags): unknown {
  if (!isObject(input)) return input
  const { listen, upstreams, journal, console } = input
  return {
    ...input,
    listen: over(listen, { host: flags.host, port: flags.port }),
    upstreams: over(upstreams, {
      v3: over(isObject(upstreams) ? upstreams['v3'] : undefined, { baseUrl: flags.v3 }),
      ...(flags.v2 === undefined
        ? {}
        : { v2: over(isObject(upstreams) ? upstreams['v2'] : undefined, { baseUrl: flags.v2 }) }),
    }),
    ...(flags.journal === undefined ? {} : { journal: over(journal, { url: flags.journal }) }),
    ...(flags.console === undefined ? {} : { console: over(console, { port: flags.console }) }),
  }
}

/** Merges the given values into a section. A section that is not a mapping stays unchanged, so that validation rejects the section. */
function over(section: unknown, values: Record<string, unknown>): unknown {
  if (!isObject(section) && section !== undefined && section !== null) return section
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return { ...section, ...Object.fromEntries(given) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A validated configuration as plain values, including its secrets. Only processes and threads of the adapter may receive these values. */
export interface PackedConfig {
  readonly packed: unknown
}

/** Packs a configuration for a message to another process or thread, because such messages contain only plain values. */
export function packConfig(config: Config): PackedConfig {
  return { packed: mapValues(config, packValue) }
}

/** Unpacks a configuration that the same version of Markbridge packed. */
export function unpackConfig({ packed }: PackedConfig): Config {
  return mapValues(packed, unpackValue) as Config
}

/** Returns the replacement of a value, or `undefined` if `mapValues` should map the members of the value. */
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
