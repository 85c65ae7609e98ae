import { type Config, ownershipChanges, planReload, refuseReload } from '../config/index.ts'
import type { Journal } from '../journal/index.ts'
import type { PartnerRegistry } from '../partners/index.ts'
import type { RateLimits } from '../upstream/index.ts'
import type { ReloadTarget } from './create-reload.ts'
import { type ConfiguredPartners, toPartners } from './partners.ts'

/** The parts of a running adapter that follow its configuration. */
interface ReloadedParts {
  readonly registry: Pick<PartnerRegistry, 'replace'>
  readonly rateLimits: Pick<RateLimits, 'forgetRates'>
  /** Resolves once the adapter has opened its journal; undefined: it was not started. */
  readonly journal: () => Promise<Pick<Journal, 'unsettled'> | undefined>
  /** Takes the rest of the configuration that is in use from now on. */
  readonly onCommit: (config: Config) => void
}

/** Creates the target of reloads in this process; `first` is the configuration of the start. */
export function createReloadTarget(
  first: ConfiguredPartners,
  { registry, rateLimits, journal, onCommit }: ReloadedParts,
): ReloadTarget {
  let current = first
  return {
    prepare: async (next) => {
      const opened = await journal()
      const { config, changes } = planReload(current.config, next)
      if (opened !== undefined) await checkPartnerChanges(current.config, config, opened)
      const partners = toPartners(config, current)
      return {
        changes,
        commit: () => {
          registry.replace(partners)
          // Otherwise the lowest rate of each key stays, also where partners with different rates share one.
          if (partners.some((partner, place) => partner !== current.partners[place])) rateLimits.forgetRates()
          current = { config, partners }
          onCommit(config)
        },
      }
    },
  }
}

/**
 * Checks that no unsettled record loses its partner. Error: `ADP_CONFIGURATION` with each partner that has to stay as it is for now,
 * and those of the journal, which is asked only where something would change.
 */
async function checkPartnerChanges(
  running: Config,
  next: Config,
  journal: Pick<Journal, 'unsettled'>,
): Promise<void> {
  const changes = ownershipChanges(running, next)
  if (changes.length === 0) return
  const unsettled = await journal.unsettled()
  const faults = changes.flatMap(({ partner, target, change }) => {
    const records = unsettled.get(partner) ?? 0
    if (records === 0) return []
    const message = `${change}, but partner ${partner} has ${records} unsettled record(s); reload again once they are settled`
    return [{ target, message }]
  })
  if (faults.length > 0) throw refuseReload(faults)
}
