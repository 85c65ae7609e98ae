import type { StageState, Unrecorded } from './rollout-store.ts'

/**
 * Until when a batch may come again that V2 was given without the journal's knowledge, if it comes again within `quietMs`: before that no
 * unit may go to V3. Pure; in the time of the database.
 */
export function quietUntil(
  state: Pick<StageState, 'revision' | 'stage' | 'sinceMs'> | undefined,
  { notedMs = -Infinity, killedMs = -Infinity, lostMs = -Infinity }: Unrecorded,
  quietMs: number,
): number {
  // Before `shadow` nothing is recorded.
  const shadowMs =
    state !== undefined && state.revision > 0 && state.stage === 'shadow' ? state.sinceMs : -Infinity
  // An instance that lost its lease may do without the journal for as long as that.
  return Math.max(shadowMs, notedMs, killedMs, lostMs + quietMs) + quietMs
}
