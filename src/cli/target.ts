import { type Config, loadConfig, type PartnerConfig } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import type { Target } from './options.ts'

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
  return new AdapterError('ADP_USAGE', `The configuration has no partner ${id}. It has: ${known.join(', ')}.`)
}
