import { readFile } from 'node:fs/promises'

import { parse, YAMLParseError } from 'yaml'

import { AdapterError } from '../errors.ts'
import { parseConfig } from './parse.ts'
import type { Config } from './schema.ts'
import { Secret } from './secret.ts'

/** Values of the command line; they win over the file. */
export interface ConfigFlags {
  readonly v3?: string | undefined
  readonly port?: number | undefined
  readonly host?: string | undefined
}

/**
 * Loads the configuration: a YAML file, then flags over it. `{ env: NAME }` and `{ file: path }` stand for a secret and are
 * resolved here; nothing else reads the environment. Errors: `ADP_CONFIGURATION` with the file's name and line.
 */
export async function loadConfig(path: string | undefined, flags: ConfigFlags = {}): Promise<Config> {
  const input = path === undefined ? {} : await readYaml(path)
  return parseConfig(await resolveSecrets(withFlags(input, flags), ''))
}

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

async function readYaml(path: string): Promise<unknown> {
  const text = await readText(path, 'configuration file')
  try {
    return (parse(text, { prettyErrors: true }) as unknown) ?? {}
  } catch (cause) {
    const line = cause instanceof YAMLParseError ? (cause.linePos?.[0].line ?? 1) : 1
    // The parser's own message quotes the line, which may hold a secret.
    throw new AdapterError('ADP_CONFIGURATION', `${path}: line ${line} is not YAML.`, { at: { path } })
  }
}

async function readText(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new AdapterError('ADP_CONFIGURATION', `The ${what} ${path} cannot be read.`, {
      at: { path },
      cause,
    })
  }
}

function withFlags(input: unknown, flags: ConfigFlags): unknown {
  if (!isObject(input)) return input
  const listen = { ...section(input, 'listen'), ...definedOnly({ host: flags.host, port: flags.port }) }
  const upstreams = section(input, 'upstreams')
  const v3 = { ...section(upstreams, 'v3'), ...definedOnly({ baseUrl: flags.v3 }) }
  return { ...input, listen, upstreams: { ...upstreams, v3 } }
}

/** Replaces `{ env }` and `{ file }` by a secret wherever one may stand. */
async function resolveSecrets(value: unknown, path: string): Promise<unknown> {
  if (Array.isArray(value)) {
    return Promise.all(value.map((item, index) => resolveSecrets(item, `${path}[${index}]`)))
  }
  if (!isObject(value)) return value
  const [[key, source] = []] = Object.entries(value)
  if (Object.keys(value).length === 1 && typeof source === 'string') {
    if (key === 'env') return fromEnvironment(source, path)
    if (key === 'file') return new Secret((await readText(source, 'secret file')).trim())
  }
  const entries = Object.entries(value).map(
    async ([name, item]) =>
      [name, await resolveSecrets(item, path === '' ? name : `${path}.${name}`)] as const,
  )
  return Object.fromEntries(await Promise.all(entries))
}

function fromEnvironment(name: string, path: string): Secret {
  const value = process.env[name]
  if (value === undefined || value === '') {
    throw new AdapterError('ADP_CONFIGURATION', `${path}: the environment variable ${name} is not set.`, {
      at: { path },
    })
  }
  return new Secret(value)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Secret)
}

function section(input: Record<string, unknown>, name: string): Record<string, unknown> {
  const value = input[name]
  return isObject(value) ? value : {}
}

function definedOnly(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}
