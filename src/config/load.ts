import { readFile } from 'node:fs/promises'

import { AdapterError } from '../errors.ts'
import { parseConfig, refuseConfig } from './parse.ts'
import { readYaml, type YamlFile } from './read-yaml.ts'
import { resolveSecrets } from './resolve-secrets.ts'
import type { Config } from './schema.ts'

/** Values of the command line; they win over the file. */
export interface ConfigFlags {
  readonly v3?: string | undefined
  readonly port?: number | undefined
  readonly host?: string | undefined
  /** Shown to nobody, since it may hold a password. */
  readonly journal?: string | undefined
}

/**
 * Loads the configuration: a YAML file, then flags over it. `{ env: NAME }` and `{ file: path }` stand for a secret and are
 * resolved here; nothing else reads the environment. Error: `ADP_CONFIGURATION` with every fault of the file, each with line
 * and column where it has them.
 */
export async function loadConfig(path: string | undefined, flags: ConfigFlags = {}): Promise<Config> {
  const file = path === undefined ? noFile : readYaml(await readText(path))
  if (file.value === undefined && path !== undefined) throw refuseConfig(file.faults, path)
  const { value, faults } = await resolveSecrets(withFlags(file.value ?? {}, flags), {
    env: (name) => process.env[name],
    file: (secret) => readFile(secret, 'utf8').catch(() => undefined),
  })
  return parseConfig(value, [...file.faults, ...faults], file.positionOf)
}

const noFile: YamlFile = { value: {}, faults: [], positionOf: () => undefined }

/** What the environment says besides the secrets that a file names. */
export interface Environment {
  /** `MARKBRIDGE_LOG_LEVEL`: debug, info, warn, error or silent. */
  readonly logLevel: string | undefined
  /** `MARKBRIDGE_SUBSCRIPTION_KEY` and `MARKBRIDGE_TOKEN`: what `send` sends. */
  readonly subscriptionKey: string | undefined
  readonly token: string | undefined
}

/** Reads the variables once; an empty one counts as unset. */
export function readEnvironment(): Environment {
  const read = (name: string): string | undefined =>
    process.env[name] === '' ? undefined : process.env[name]
  return {
    logLevel: read('MARKBRIDGE_LOG_LEVEL'),
    subscriptionKey: read('MARKBRIDGE_SUBSCRIPTION_KEY'),
    token: read('MARKBRIDGE_TOKEN'),
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new AdapterError('ADP_CONFIGURATION', `The configuration file ${path} cannot be read.`, {
      at: { path },
      cause,
    })
  }
}

function withFlags(input: unknown, flags: ConfigFlags): unknown {
  if (!isObject(input)) return input
  const { listen, upstreams, journal } = input
  return {
    ...input,
    listen: over(listen, { host: flags.host, port: flags.port }),
    upstreams: over(upstreams, {
      v3: over(isObject(upstreams) ? upstreams['v3'] : undefined, { baseUrl: flags.v3 }),
    }),
    ...(flags.journal === undefined ? {} : { journal: over(journal, { url: flags.journal }) }),
  }
}

/** A section with the values that are given over it; what is no section stays, so that the check refuses it. */
function over(section: unknown, values: Record<string, unknown>): unknown {
  if (!isObject(section) && section !== undefined && section !== null) return section
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return { ...section, ...Object.fromEntries(given) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
