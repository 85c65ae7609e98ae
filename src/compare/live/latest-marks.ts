/** The order of the writes that this instance has seen of each learner and event. It holds keys of marks, and leaves with the process. */
interface LatestMarks {
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

/** Marks of a large school in two days. Of more the oldest are forgotten, and a correction of one is not known as such. */
const MAX_MARKS = 100_000

const unknownPlace: MarkPlace = { isCorrection: false, isSuperseded: () => false }

/** Creates the memory of one process. */
export function createLatestMarks(): LatestMarks {
  /** The place of the last write of each key, the oldest first. */
  const latest = new Map<string, number>()
  let count = 0
  const note = (name: string): number => {
    latest.delete(name)
    latest.set(name, ++count)
    const [oldest] = latest.size > MAX_MARKS ? latest.keys() : []
    if (oldest !== undefined) latest.delete(oldest)
    return count
  }
  return {
    wrote: (partner, keys) => {
      for (const key of keys) if (key !== undefined) note(`${partner} ${key}`)
    },
    placesOf: (partner, keys) =>
      keys.map((key) => {
        if (key === undefined) return unknownPlace
        const name = `${partner} ${key}`
        const isCorrection = latest.has(name)
        const place = note(name)
        return { isCorrection, isSuperseded: () => (latest.get(name) ?? place) > place }
      }),
  }
}
