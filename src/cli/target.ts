import { type Config, type Environment, loadConfig, type PartnerConfig } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { isLoopback } from '../http/address.ts'
import { NO_CONFIG, type Target } from './options.ts'

/** A placeholder for commands that call no service, because every configuration must have an address of V3. */
const NO_SERVICE = 'http://127.0.0.1'

/** Loads the configuration without the secrets of partners. Without a file, the defaults of `serve` apply. */
export function loadTarget({ config: path, journal }: Omit<Target, 'json'>): Promise<Config> {
  return loadConfig(
    path,
    { journal, v3: path === undefined ? NO_SERVICE : undefined },
    { secretsOf: ['journal', 'rollout'] },
  )
}

export function loadOffline(path: string | undefined): Promise<Config> {
  return loadConfig(path, path === undefined ? { v3: NO_SERVICE } : {})
}

/** Returns the partner with this id, or the first partner if no id is given. Throws `ADP_USAGE` if the partner does not exist. */
export function findPartner({ partners }: Config, id: string | undefined): PartnerConfig {
  const found = id === undefined ? partners[0] : partners.find((partner) => partner.id === id)
  if (found !== undefined) return found
  throw unknownPartner(
    id ?? '',
    partners.map((partner) => partner.id),
  )
}

export function unknownPartner(id: string, known: readonly string[]): AdapterError {
  return usage(
    `The configuration has no partner ${id}. Nothing was done. Name one of its partners (${known.join(', ')}), or another configuration with --config.`,
  )
}

export interface SideFlags {
  readonly v2?: URL
  readonly v3?: URL
  readonly config?: string
  readonly partner?: string
}

/** The two headers that every call has (service.md 5). */
interface Credentials {
  readonly authorization: string
  readonly subscriptionKey: string
}

export interface ResolvedSides {
  readonly config: Config
  readonly partner: PartnerConfig
  /** The id of the partner, or `null` if no configuration file was given. */
  readonly partnerName: string | null
  readonly v2: URL
  readonly v2Credentials: Credentials
  readonly v3Credentials: Credentials
}

/**
 * Finds the addresses, the partner and the credentials. Flags override the configuration, and the partner's own key and tokens for V3
 * override the environment. Throws `ADP_USAGE` if a value is missing, with a message that names the flag or variable for it.
 */
export async function resolveSides(flags: SideFlags, environment: Environment): Promise<ResolvedSides> {
  if (flags.config === undefined && flags.v3 === undefined)
    throw usage(`${NO_CONFIG}, or name V3 with --v3 <url>.`)
  // `--v2` is used directly below. It does not have to be part of the configuration.
  const config = await loadConfig(flags.config, { v3: flags.v3?.href })
  const partner = chosenPartner(config, flags.partner)
  const v2 = flags.v2 ?? partner.v2.baseUrl ?? config.upstreams.v2?.baseUrl
  if (v2 === undefined)
    throw usage(
      'The address of V2 is missing. Nothing was read. Set --v2 <url>, or upstreams.v2.baseUrl in the configuration.',
    )
  const { subscriptionKey, token } = environment
  const v2Credentials = credentialsFor(v2, subscriptionKey, token)
  const { v3 } = partner
  const own = v3.auth.mode === 'clientCredentials' ? '' : undefined
  const v3Credentials = credentialsFor(
    config.upstreams.v3.baseUrl,
    v3.subscriptionKey?.reveal() ?? environment.v3SubscriptionKey ?? subscriptionKey,
    own ?? environment.v3Token ?? token,
  )
  const partnerName = flags.config === undefined ? null : partner.id
  return { config, partner, partnerName, v2, v2Credentials, v3Credentials }
}

export async function resolvePartner(
  flags: SideFlags,
): Promise<Pick<ResolvedSides, 'config' | 'partner' | 'partnerName'>> {
  const config = await loadOffline(flags.config)
  const partner = chosenPartner(config, flags.partner)
  return { config, partner, partnerName: flags.config === undefined ? null : partner.id }
}

function chosenPartner(config: Config, id: string | undefined): PartnerConfig {
  const { partners } = config
  if (id !== undefined || partners.length === 1) return findPartner(config, id)
  throw usage(
    `The configuration has several partners. Nothing was done. Name one with --partner: ${partners.map((one) => one.id).join(', ')}.`,
  )
}

/** Returns the credentials for one side. On loopback they default to the credentials of the sandbox, which no real service accepts. */
function credentialsFor(
  base: URL,
  subscriptionKey: string | undefined,
  token: string | undefined,
): Credentials {
  const fallback = isLoopback(base.hostname) ? 'sandbox' : undefined
  const key = subscriptionKey ?? fallback
  const bearer = token ?? fallback
  const missing = [
    ...(key === undefined ? ['MARKBRIDGE_SUBSCRIPTION_KEY'] : []),
    ...(bearer === undefined ? ['MARKBRIDGE_TOKEN'] : []),
  ]
  if (key === undefined || bearer === undefined)
    throw usage(
      `The environment contains no credentials. Nothing was read. Set ${missing.join(' and ')}. For V3 alone, the same names have the prefix MARKBRIDGE_V3_.`,
    )
  return { subscriptionKey: key, authorization: bearer === '' ? '' : `Bearer ${bearer}` }
}

const usage = (message: string): AdapterError => new AdapterError('ADP_USAGE', message)
