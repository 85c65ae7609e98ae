import type { ComparedSide, SidePage } from '../../../src/compare/run/sides.ts'

export interface Mark {
  readonly ExternalID: string
  readonly Learner: string
  readonly AttendableEvent: string
  readonly AttendableEventStart: string
  readonly Present: boolean
  readonly Absent: boolean
  readonly Comment: string | null
}

/** Returns a GUID that begins with the digits of `kind` and ends in the digits of `number`. */
export function guid(kind: number, number: number): string {
  return `${String(kind).padStart(8, '0')}-0000-4000-8000-${String(number).padStart(12, '0')}`
}

/** Returns the mark of a learner on a day of January 2026. */
export function markOf(learner: number, day: number, changes: Partial<Mark> = {}): Mark {
  const number = day * 1_000 + learner
  return {
    ExternalID: guid(1, number),
    Learner: guid(2, learner),
    AttendableEvent: guid(3, day),
    AttendableEventStart: `2026-01-${String(day).padStart(2, '0')}T09:00:00Z`,
    Present: true,
    Absent: false,
    Comment: null,
    ...changes,
  }
}

export interface FakeSide extends ComparedSide {
  /** The decoded queries in the order of the calls. */
  readonly queries: string[]
}

/** Creates a service that answers with marks in pages. `before` is called with the number of each call, from 1. */
export function fakeSide(
  marks: () => readonly Mark[],
  {
    pageSize = 1_000,
    before,
  }: { pageSize?: number; before?: (call: number, query: string) => void | Promise<void> } = {},
): FakeSide {
  const queries: string[] = []
  return {
    queries,
    page: async (raw, signal): Promise<SidePage> => {
      const query = decodeURIComponent(raw)
      queries.push(query)
      await before?.(queries.length, query)
      signal.throwIfAborted()
      const skip = Number(/&\$skip=(\d+)$/.exec(query)?.[1] ?? 0)
      const rows = marks().filter((mark) => matches(mark, query))
      const more = rows.length > skip + pageSize
      return {
        rows: rows.slice(skip, skip + pageSize),
        next: more ? `${raw.replace(/&\$skip=\d+$/, '')}&$skip=${skip + pageSize}` : undefined,
      }
    },
  }
}

function matches({ Learner, AttendableEventStart }: Mark, query: string): boolean {
  const [, from = '', to = ''] = /ge (\S+) and AttendableEventStart lt ([^\s&]+)/.exec(query) ?? []
  const start = Date.parse(AttendableEventStart)
  if (start < Date.parse(from) || start >= Date.parse(to)) return false
  const learners = [...query.matchAll(/Learner eq ([^\s)&]+)/g)].map(([, id]) => id)
  return learners.length === 0 || learners.includes(Learner)
}
