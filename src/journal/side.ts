/** The codes of the sides that may serve a batch, in the tables. */
export const sideCodes = { v3: 0, v2: 1 } as const

/** The code of a batch's side; undefined: V3 serves it. */
export const toSideCode = (side: 'v2' | undefined): number => sideCodes[side ?? 'v3']

/** The side of a code, as the port has it. */
export const toSide = (code: number): 'v2' | undefined => (code === sideCodes.v2 ? 'v2' : undefined)

/** A condition: V2 serves the batch of this number; SQL of both databases. */
export const isOnV2 = (batch: string): string =>
  `exists (select 1 from journal_batches s where s.id = ${batch} and s.side = ${sideCodes.v2})`
