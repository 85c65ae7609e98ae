import { AdapterError } from '../errors.ts'
import { changedPaths } from './changed-paths.ts'
import { journalUrlOf } from './journal-schema.ts'
import type { Config } from './schema.ts'

/** The changes of a new configuration to the running one. */
export interface ConfigChanges {
  /** Ids of partners. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** Paths of the keys that differ from those in use and take effect with the next start. */
  readonly needsRestart: readonly string[]
}

/** A reload that was checked. */
export interface ReloadPlan {
  /** The new configuration, with the sections that need a restart as they are in use. */
  readonly config: Config
  readonly changes: ConfigChanges
}

/** The sections of the file that a reload leaves as they are. */
export const restartSections = ['listen', 'upstreams', 'journal', 'rollout', 'passThrough'] as const

/** Only the commands of `rollout` use them, and read the file each time. */
const commandKeys = /^rollout\.(?:operators|drainMs)\b/

/**
 * Decides what of a new configuration takes effect while the adapter runs. Error: `ADP_CONFIGURATION` where the base address of V3
 * differs, since keys and tokens of the new partners are for the service at the new address.
 */
export function planReload(running: Config, next: Config): ReloadPlan {
  const needsRestart = restartSections.flatMap((section) =>
    changedPaths(running[section], next[section], section).filter((path) => !commandKeys.test(path)),
  )
  const target = needsRestart.find((path) => path === 'upstreams.v3.baseUrl')
  if (target !== undefined) throw refuseReload([{ target, message: 'needs a restart when it changes' }])
  const raised = raisedStages(running, next)
  if (raised.length > 0) throw refuseReload(raised)
  const { listen, upstreams, journal, passThrough } = running
  const { operators, drainMs } = next.rollout
  const rollout = { ...running.rollout, operators, drainMs }
  return {
    config: { ...next, listen, upstreams, journal, rollout, passThrough },
    changes: { ...comparePartners(running, next), needsRestart },
  }
}

const stages: readonly string[] = ['legacy', 'shadow', 'canary', 'v3', 'complete']

/** A step forward has to drain, which a reload does not: the command does. Without a journal there is the file alone. */
function raisedStages(
  running: Config,
  next: Config,
): readonly { readonly target: string; readonly message: string }[] {
  if (journalUrlOf(running.journal) === 'none') return []
  const before = new Map(running.partners.map((partner) => [partner.id, partner]))
  return next.partners.flatMap(({ id, stage }, index) => {
    const own = before.get(id)
    if (own === undefined || stages.indexOf(stage) <= stages.indexOf(own.stage)) return []
    const message = `partner ${id} is at ${own.stage}: markbridge rollout set takes it forward, a reload does not`
    return [{ target: `partners[${index}].stage`, message }]
  })
}

/** The error of a configuration that is valid and cannot replace the running one. */
export function refuseReload(
  faults: readonly { readonly target: string; readonly message: string }[],
): AdapterError {
  return new AdapterError(
    'ADP_CONFIGURATION',
    `The configuration cannot replace the running one:\n${faults.map(({ target, message }) => `  ${target}: ${message}`).join('\n')}`,
    { details: faults.map((fault) => ({ code: 'reload', ...fault })) },
  )
}

function comparePartners(running: Config, next: Config): Omit<ConfigChanges, 'needsRestart'> {
  const before = new Map(running.partners.map((partner) => [partner.id, partner]))
  const after = new Set(next.partners.map(({ id }) => id))
  const idsOf = (partners: Config['partners']): string[] => partners.map(({ id }) => id)
  return {
    added: idsOf(next.partners.filter(({ id }) => !before.has(id))),
    removed: idsOf(running.partners.filter(({ id }) => !after.has(id))),
    changed: idsOf(
      next.partners.filter((partner) => {
        const old = before.get(partner.id)
        return old !== undefined && changedPaths(old, partner).length > 0
      }),
    ),
  }
}
