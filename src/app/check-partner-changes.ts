import { type Config, ownershipChanges, refuseReload } from '../config/index.ts'
import type { Journal } from '../journal/index.ts'

/**
 * Checks that no unsettled record loses its partner. Error: `ADP_CONFIGURATION` with each partner that has to stay as it is for now,
 * and those of the journal, which is asked only where something would change.
 */
export async function checkPartnerChanges(
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
