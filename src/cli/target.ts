import { type Config, type Environment, loadConfig, type PartnerConfig } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { isLoopback } from '../http/address.ts'
import { NO_CONFIG, type Target } from './options.ts'

/** Every configuration needs the address of V3, and a command that calls no service has none. */
const NO_SERVICE = 'http://127.0.0.1'

/**
 * Loads the configuration of the flags, without the secrets of partners, which a command that calls no service does not use; without a file
 * it is the one of `serve` without a file.
 */
export function loadTarget({ config: path, journal }: Omit<Target, 'json'>): Promise<Config> {
  return loadConfig(
    path,
    { journal, v3: path === undefined ? NO_SERVICE : undefined },
    { secretsOf: ['journal', 'rollout'] },
  )
}

/** Loads a configuration by which exchanges are decoded and translated offline; without a file it is the one of `serve` without a file. */
export function loadOffline(path: string | undefined): Promise<Config> {
  return loadConfig(path, path === undefined ? { v3: NO_SERVICE } : {})
}

/** The partner of this id; without one the first. Error: `ADP_USAGE`. */
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
    `The configuration has no partner ${id}. It has: ${known.join(', ')}. Name another configuration with --config.`,
  )
}

/** The flags that name what a run compares. */
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

/** What a run compares, and with which settings. */
export interface ResolvedSides {
  readonly config: Config
  readonly partner: PartnerConfig
  /** As reports name it; null: no configuration was given. */
  readonly partnerName: string | null
  readonly v2: URL
  readonly v2Credentials: Credentials
  readonly v3Credentials: Credentials
}

/**
 * Finds addresses, partner and credentials: flags before the configuration, the partner's own key and tokens before the
 * environment. Errors: `ADP_USAGE` for what is missing, with the flag or variable that gives it; those of `loadConfig`.
 */
export async function resolveSides(flags: SideFlags, environment: Environment): Promise<ResolvedSides> {
  if (flags.config === undefined && flags.v3 === undefined)
    throw usage(`${NO_CONFIG}, or name V3 with --v3 <url>.`)
  // No journal is opened; without a file the address of V2 is not the configuration's, which would ask for a stage.
  const config = await loadConfig(flags.config, { v3: flags.v3?.href })
  const partner = chosenPartner(config, flags.partner)
  const v2 = flags.v2 ?? partner.v2.baseUrl ?? config.upstreams.v2?.baseUrl
  if (v2 === undefined) throw usage('Name V2: --v2 <url>, or upstreams.v2.baseUrl of the configuration.')
  const { subscriptionKey, token } = environment
  const v2Credentials = credentialsFor('V2', v2, subscriptionKey, token)
  const { v3 } = partner
  const own = v3.auth.mode === 'clientCredentials' ? '' : undefined
  const v3Credentials = credentialsFor(
    'V3',
    config.upstreams.v3.baseUrl,
    v3.subscriptionKey?.reveal() ?? environment.v3SubscriptionKey ?? subscriptionKey,
    own ?? environment.v3Token ?? token,
  )
  const partnerName = flags.config === undefined ? null : partner.id
  return { config, partner, partnerName, v2, v2Credentials, v3Credentials }
}

/** The partner whose settings count where no service is called. */
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
  throw usage(`Name the partner: --partner <id>, one of ${partners.map((one) => one.id).join(', ')}.`)
}

/** What a side is asked with. Only a stand-in on this machine gets the sandbox's, which no service knows. */
function credentialsFor(
  side: 'V2' | 'V3',
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
      `There are no credentials for ${side}: set ${missing.join(' and ')}${side === 'V3' ? ', or the same with MARKBRIDGE_V3_ in front' : ''}.`,
    )
  return { subscriptionKey: key, authorization: bearer === '' ? '' : `Bearer ${bearer}` }
}

const usage = (message: string): AdapterError => new AdapterError('ADP_USAGE', message)
