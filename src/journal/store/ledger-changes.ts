/** The changes of a transaction to the totals: per partner, by the codes of the states. */
export interface LedgerChanges {
  /** `n` records of a partner came into state `to`, from state `from` or as new ones. */
  move(partner: string, from: number | undefined, to: number, n?: number): void
  /** Partners in the order of their names, so that transactions lock them in the same order. */
  list(): readonly (readonly [partner: string, changes: readonly number[]])[]
}

/** Creates empty changes. */
export function createLedgerChanges(): LedgerChanges {
  const partners = new Map<string, number[]>()
  const add = (partner: string, state: number, n: number): void => {
    let changes = partners.get(partner)
    if (changes === undefined) partners.set(partner, (changes = [0, 0, 0, 0, 0]))
    changes[state] = (changes[state] ?? 0) + n
  }
  return {
    move: (partner, from, to, n = 1) => {
      if (from !== undefined) add(partner, from, -n)
      add(partner, to, n)
    },
    list: () =>
      [...partners]
        .filter(([, changes]) => changes.some((n) => n !== 0))
        .sort(([one], [other]) => (one < other ? -1 : 1)),
  }
}
