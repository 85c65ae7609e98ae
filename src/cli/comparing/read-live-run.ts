import { isCompared, toRunDocument } from '../../compare/evidence/index.ts'
import type { RunDocument } from '../../compare/run-document.ts'
import { AdapterError } from '../../errors.ts'
import { expectMayLook, loadTarget, openTargetStore, type RolloutTarget } from '../rollout/open-target.ts'

const PREFIX = 'live:'

/** The partner of a run that is named `live:<partner>`; undefined: the name is of a run that was kept. */
export function livePartnerOf(run: string): string | undefined {
  return run.startsWith(PREFIX) ? run.slice(PREFIX.length) : undefined
}

/** What live comparison has found of a partner at its latest stage and share, as the document of a run. Error: `ADP_USAGE` where it is nothing. */
export async function readLiveRun(partner: string, target: RolloutTarget): Promise<RunDocument> {
  const config = await loadTarget(target)
  expectMayLook(config)
  const store = await openTargetStore(config)
  try {
    const kept = await store.evidence.read(partner)
    const [latest] = kept.filter(isCompared).toSorted((one, other) => other.lastMs - one.lastMs)
    if (latest !== undefined) return toRunDocument(latest)
    throw new AdapterError(
      'ADP_USAGE',
      'Live comparison has found nothing about this partner yet. It runs at shadow, and later with partners[].check.v2.',
    )
  } finally {
    await store.close()
  }
}
