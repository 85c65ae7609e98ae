/** The order of the writes that this instance has seen of each learner and event. */
export interface LatestMarks {
  /** Notes a write of these keys. */
  wrote(partner: string, keys: readonly (string | undefined)[]): void
  /** Notes a write of these keys, and gives the place of each record in the order of its key. */
  placesOf(partner: string, keys: readonly (string | undefined)[]): readonly MarkPlace[]
}

/** One write of a learner and event among the others. */
export interface MarkPlace {
  /** True where this instance had seen an earlier one. */
  readonly isCorrection: boolean
  /** True once a newer one was seen. */
  isSuperseded(): boolean
}

/** Marks of a large school in a day. Of twice as many the older ones are forgotten, and a correction of one is not known as such. */
const MAX_MARKS = 50_000

const unknownPlace: MarkPlace = { isCorrection: false, isSuperseded: () => false }

type ByPartner = Map<string, Map<string, number>>

/** Creates the memory of one process. It holds keys of marks, and leaves with the process. */
export function createLatestMarks(): LatestMarks {
  /** The place of the last write of each key: those of the latest writes, and those before. */
  let fresh: ByPartner = new Map()
  let older: ByPartner = new Map()
  let [count, size] = [0, 0]
  const latestOf = (partner: string, key: string): number | undefined =>
    fresh.get(partner)?.get(key) ?? older.get(partner)?.get(key)
  /** Every key of every write comes here, whether it is compared or not. */
  const note = (partner: string, key: string): void => {
    let own = fresh.get(partner)
    if (own === undefined) {
      own = new Map<string, number>()
      fresh.set(partner, own)
    }
    if (!own.has(key)) size += 1
    own.set(key, ++count)
    if (size < MAX_MARKS) return
    older = fresh
    fresh = new Map()
    size = 0
  }
  return {
    wrote: (partner, keys) => {
      for (const key of keys) if (key !== undefined) note(partner, key)
    },
    placesOf: (partner, keys) =>
      keys.map((key) => {
        if (key === undefined) return unknownPlace
        const isCorrection = latestOf(partner, key) !== undefined
        note(partner, key)
        const place = count
        return { isCorrection, isSuperseded: () => (latestOf(partner, key) ?? place) > place }
      }),
  }
}
