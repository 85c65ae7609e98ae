import { DAY_MS } from './days.ts'

/** Session starts from `fromMs`, before `toMs`, of some learners or of all. */
export interface Window {
  /** Index of the list of learners. */
  readonly list: number
  readonly fromMs: number
  readonly toMs: number
}

/** Where a run begins or continues: the windows before it are done. */
export interface RunPosition {
  readonly list: number
  readonly fromMs: number
  /** Length of the next window, which follows from the rows of those before. */
  readonly days: number
}

/** The windows of a run, one after another. */
export interface WindowPlan {
  /** The next window; undefined: there is none left. Its length follows from the rows of those before. */
  next(): Window | undefined
  /** Where `next` goes on. */
  position(): RunPosition
  /** Says how many rows the larger side had in a window. */
  note(window: Window, rows: number): void
  /** Days of all windows, each counted for each list. */
  readonly days: number
  /** Days before a position. */
  daysBefore(position: Pick<RunPosition, 'list' | 'fromMs'>): number
}

export interface WindowPlanOptions {
  readonly fromMs: number
  /** The first moment after the last day. */
  readonly toMs: number
  /** Lists of learners that are read one after another; 1 where all are read at once. */
  readonly lists: number
  /** Rows that a window is to have, at most about. */
  readonly targetRows: number
  readonly start: RunPosition
}

/** Days that the service lets one read span (service-facts 1). */
const MAX_DAYS = 90
/** Length of the first window: two rows a learner and day, so that a week of a school has some 7,000. */
const FIRST_DAYS = 7
/** A window that is partly of holidays says little of the next one, and one without rows says nothing. */
const MAX_GROWTH = 2
/** A window that cannot be divided any further. */
const LEAST_MS = 3_600_000

/** The position before all windows. */
export function firstPosition(fromMs: number): RunPosition {
  return { list: 0, fromMs, days: FIRST_DAYS }
}

/** Plans windows of days, about as long as gives `targetRows`; narrow ranges are faster than wide ones (service-facts 18). */
export function planWindows(options: WindowPlanOptions): WindowPlan {
  const { fromMs, toMs, lists, targetRows, start } = options
  const daysOfList = Math.round((toMs - fromMs) / DAY_MS)
  let { list, fromMs: from, days } = start
  return {
    days: daysOfList * lists,
    daysBefore: (before) => before.list * daysOfList + Math.round((before.fromMs - fromMs) / DAY_MS),
    next: () => {
      if (from >= toMs) {
        list += 1
        from = fromMs
      }
      if (list >= lists) return undefined
      const window = { list, fromMs: from, toMs: Math.min(toMs, from + days * DAY_MS) }
      from = window.toMs
      return window
    },
    position: () => ({ list, fromMs: from, days }),
    note: (window, rows) => {
      if (rows === 0) return
      const before = Math.max(1, Math.round((window.toMs - window.fromMs) / DAY_MS))
      const fitting = Math.floor((before * targetRows) / rows)
      days = Math.max(1, Math.min(fitting, before * MAX_GROWTH, MAX_DAYS))
    },
  }
}

/** Plans one window for each list: of records that have no days. */
export function planLists(lists: number, start: RunPosition): WindowPlan {
  let { list } = start
  return {
    days: 0,
    daysBefore: () => 0,
    next: () => (list < lists ? { list: list++, fromMs: 0, toMs: 0 } : undefined),
    position: () => ({ ...start, list }),
    note: () => undefined,
  }
}

/** The halves of a window, at a day's end where it has several days; undefined for one that cannot be divided. */
export function splitWindow({ list, fromMs, toMs }: Window): readonly [Window, Window] | undefined {
  const unit = toMs - fromMs > DAY_MS ? DAY_MS : LEAST_MS
  const units = Math.ceil((toMs - fromMs) / unit)
  if (units < 2) return undefined
  const middle = fromMs + Math.floor(units / 2) * unit
  return [
    { list, fromMs, toMs: middle },
    { list, fromMs: middle, toMs },
  ]
}
