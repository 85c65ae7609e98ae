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

/** Marks of a large school in a day; with more of them the oldest are forgotten, and a correction of one is not known as such. */
const MAX_MARKS = 50_000

const unknownPlace: MarkPlace = { isCorrection: false, isSuperseded: () => false }

/** Creates the memory of one process. It holds keys of marks, and leaves with the process. */
export function createLatestMarks(): LatestMarks {
  /** By partner and key; the key that was written last is the last. */
  const latest = new Map<string, Map<string, number>>()
  let [count, size] = [0, 0]
  const ofPartner = (partner: string): Map<string, number> => {
    const known = latest.get(partner)
    if (known !== undefined) return known
    const own = new Map<string, number>()
    latest.set(partner, own)
    return own
  }
  /** Gives whether there was an earlier write of the key. Every key of every write comes here, whether it is compared or not. */
  const note = (own: Map<string, number>, key: string): boolean => {
    const isKnown = own.delete(key)
    own.set(key, ++count)
    if (isKnown || ++size <= MAX_MARKS) return isKnown
    for (const oldest of own.keys()) {
      own.delete(oldest)
      size -= 1
      break
    }
    return false
  }
  return {
    wrote: (partner, keys) => {
      const own = ofPartner(partner)
      for (const key of keys) if (key !== undefined) note(own, key)
    },
    placesOf: (partner, keys) => {
      const own = ofPartner(partner)
      return keys.map((key) => {
        if (key === undefined) return unknownPlace
        const isCorrection = note(own, key)
        const place = count
        return { isCorrection, isSuperseded: () => (own.get(key) ?? place) > place }
      })
    },
  }
}
