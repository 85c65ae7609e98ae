import { formatPatch, type Learned, learnedOf, learnRecordings, propose } from '../compare/learn/index.ts'
import type { Config } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { readRecordingKey } from './recordings/recording-key.ts'
import { loadTarget, openTargetStore, type RolloutTarget } from './rollout/open-target.ts'

/** The flags of `compare learn`. */
export interface CompareLearnOptions extends RolloutTarget {
  /** Folder of recordings, in place of what a running adapter has counted. */
  readonly recording?: string
  /** Where the key of the recordings is: `env:NAME` or `file:path`. */
  readonly key?: string
}

/**
 * Prints what V2's replies say of the settings of a partner. Returns 0, or 3 where nothing was observed. Errors: `ADP_USAGE` for a partner that
 * the configuration does not have.
 */
export async function runCompareLearn(partner: string, options: CompareLearnOptions): Promise<number> {
  const config = await loadTarget(options)
  const settings = config.partners.find(({ id }) => id === partner)
  if (settings === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      `The configuration has no partner of this id. It has: ${config.partners.map(({ id }) => id).join(', ')}.`,
    )
  const learned = await readLearned(partner, config, options)
  const proposals = propose(learned, settings)
  if (options.json === true) console.log(JSON.stringify({ partner, ...proposals }))
  else console.log(formatPatch(partner, proposals))
  if (learned.size > 0) return 0
  console.error(
    'markbridge: nothing was observed: exchanges are counted at stage shadow, and kept every five seconds; recordings are read with --recording <dir>.',
  )
  return 3
}

async function readLearned(
  partner: string,
  config: Config,
  { recording, key }: CompareLearnOptions,
): Promise<Learned> {
  if (recording !== undefined)
    return learnRecordings(recording, key === undefined ? undefined : await readRecordingKey(key))
  const store = await openTargetStore(config)
  try {
    return learnedOf(await store.evidence.read(partner))
  } finally {
    await store.close()
  }
}
