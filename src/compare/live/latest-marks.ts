import { BoundedMap } from '../../partners/bounded-map.ts'

/** The order of the writes that this instance has seen of each learner and event. */
export interface LatestMarks {
  /** Notes a write of these keys; resolves the place of each record in the order of its key. */
  wrote(partner: string, keys: readonly (string | undefined)[]): readonly MarkPlace[]
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
  const latest = new BoundedMap<string, number>(MAX_MARKS)
  let count = 0
  return {
    wrote: (partner, keys) =>
      keys.map((key) => {
        if (key === undefined) return unknownPlace
        const name = `${partner} ${key}`
        count += 1
        const own = count
        const isCorrection = latest.get(name) !== undefined
        latest.set(name, own)
        return { isCorrection, isSuperseded: () => (latest.get(name) ?? own) > own }
      }),
  }
}
