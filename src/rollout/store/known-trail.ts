import type { JournalDatabase } from '../../journal/index.ts'
import type { Head } from './change-transaction.ts'
import type { KnownTrail } from './rollout-store.ts'
import { macOf } from './stage-row.ts'

/** What an end of the trail says that is as it was written. */
export function toTrail(
  { key, keyed }: Pick<JournalDatabase['macKey'], 'key' | 'keyed'>,
  { entries, last_mac: mac, repaired_ms: repairedMs }: Head,
): Omit<KnownTrail, 'revisions'> {
  // Tells another key, and nothing of this one.
  const keyName = keyed ? macOf(key, 'name of the key', []).slice(0, 32) : ''
  return { keyName, entries, mac, repairedMs: repairedMs ?? 0 }
}

/**
 * True where a trail goes on from the one that was known; `mac` is that of the row that was the last one then. A key that was known stays.
 * After a repair the rows may be others: only who has the key can have made it, and it came later.
 */
export function continues(known: KnownTrail, now: Omit<KnownTrail, 'revisions'>, mac: unknown): boolean {
  if (known.keyName !== '' && known.keyName !== now.keyName) return false
  if (now.repairedMs !== known.repairedMs) return now.repairedMs > known.repairedMs
  return now.entries >= known.entries && (known.entries === 0 || mac === known.mac)
}
