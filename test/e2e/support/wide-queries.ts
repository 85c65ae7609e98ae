import { createQueryChoices, DAY_MS, type ReadSamples, toLiteral } from './read-queries.ts'

/** A V2 query over more than 90 days, and the narrow ones that give the same records where no range may be wide. */
export interface WideQuery {
  readonly query: string
  /** In the order of the answer; without `ordered` each has its own order inside. */
  readonly narrow: readonly string[]
  readonly ordered: boolean
  readonly skip: number
  /** Infinity: all. */
  readonly top: number
  readonly count: boolean
}

/** Days of a narrow query: another number than the adapter's, so that no boundary is the same by chance. */
const NARROW_DAYS = 41

/** Makes queries over 91 to 400 days of some learners, the same ones for a seed. */
export function makeWideQueries(count: number, samples: ReadSamples, seed: number): WideQuery[] {
  const { number, one, condition, field, option } = createQueryChoices(samples, seed)
  const firstDay = Date.UTC(2024, 8, 2)
  return Array.from({ length: count }, () => {
    const fromMs = firstDay + number(300) * DAY_MS + number(24) * 3_600_000
    const toMs = fromMs + (91 + number(310)) * DAY_MS
    const learners = [one(samples.learners), one(samples.learners), one(samples.learners)]
    const who = one([`Learner eq ${learners[0]}`, `Learner in (${learners.join(',')})`])
    const what = number(3) === 0 ? who : `${who} and ${condition(2)}`
    const begin = `AttendableEventStart ge ${toLiteral(fromMs)}`
    const end = `AttendableEventStart lt ${toLiteral(toMs)}`
    const filter = one([`${begin} and ${end} and ${what}`, `(${what}) and (${end} and ${begin})`, `${toLiteral(fromMs)} le AttendableEventStart and ${what} and not (AttendableEventStart ge ${toLiteral(toMs)}) and ${end}`]) // prettier-ignore
    const order = one(['', 'AttendableEventStart,Learner', 'AttendableEventStart desc,Learner desc'])
    const shape = [
      ...(order === '' ? [] : [option('orderby', order)]),
      ...(number(3) === 0 ? [option('select', `ExternalID,${field()},${field()}`)] : []),
    ]
    const skip = order === '' ? 0 : one([0, 0, 3, 120])
    const top = order === '' ? Infinity : one([Infinity, Infinity, 5, 250])
    const counted = number(2) === 0
    const narrow: string[] = []
    for (let at = fromMs; at < toMs; at += NARROW_DAYS * DAY_MS) {
      const part = `AttendableEventStart ge ${toLiteral(at)} and AttendableEventStart lt ${toLiteral(Math.min(at + NARROW_DAYS * DAY_MS, toMs))}`
      narrow.push([option('filter', `${part} and (${what})`), ...shape].join('&'))
    }
    if (order.includes('desc')) narrow.reverse()
    return {
      query: [
        option('filter', filter),
        ...shape,
        ...(skip === 0 ? [] : [option('skip', String(skip))]),
        ...(top === Infinity ? [] : [option('top', String(top))]),
        ...(counted ? [option('count', 'true')] : []),
      ].join('&'),
      narrow,
      ordered: order !== '',
      skip,
      top,
      count: counted,
    }
  })
}
