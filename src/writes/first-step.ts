/**
 * What comes first for a record. `readBack`: it may have been applied before, so it is read back, and posted only if V3 does not show it.
 * `check`: it was not applied, and there may be a newer mark that the journal does not know; it is posted only after a read that shows
 * none.
 */
export type FirstStep = 'post' | 'readBack' | 'check'
