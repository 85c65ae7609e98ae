export const DAY_MS = 86_400_000

export function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/**
 * The records that one query selects: marks of sessions that start between `fromMs` and `toMs` (exclusive), or registrations, which have no
 * days. `list` is the index of the list of learners, or 0 for all learners.
 */
export interface Window {
  readonly kind: 'marks' | 'registrations'
  readonly list: number
  readonly fromMs: number
  readonly toMs: number
}

interface WindowPlanOptions {
  readonly fromMs: number
  readonly toMs: number
  /** The number of lists of learners, which are read one after another. 1 if all learners are read at once. */
  readonly lists: number
  readonly registrations: boolean
  readonly targetRows: number
}

/** The number of days per read that the service allows (service-facts 1). */
const MAX_DAYS = 90
/** The length of the first window in days. With two rows per learner and day, a school has about 7,000 rows per week. */
const FIRST_DAYS = 7
/** The maximum factor by which a window grows. A window with holidays has few rows and says little about the next window. */
const MAX_GROWTH = 2
const MIN_WINDOW_MS = 3_600_000

export const daysOf = ({ fromMs, toMs }: Pick<Window, 'fromMs' | 'toMs'>): number =>
  Math.round((toMs - fromMs) / DAY_MS)

/** Plans windows with about `targetRows` rows each. The service reads narrow ranges of days faster than wide ones (service-facts 18). */
export function planWindows(options: WindowPlanOptions) {
  const { fromMs, toMs, lists, registrations, targetRows } = options
  let days = FIRST_DAYS
  return {
    /** The number of days in all windows of marks: the days of the range, multiplied by the number of lists. */
    days: daysOf({ fromMs, toMs }) * lists,
    /** Yields the windows. Each window is planned after `fit` was called for the previous window. */
    windows: function* (): Generator<Window> {
      for (let list = 0; list < lists; list += 1)
        for (let from = fromMs; from < toMs;) {
          const until = Math.min(toMs, from + days * DAY_MS)
          yield { kind: 'marks', list, fromMs: from, toMs: until }
          from = until
        }
      if (!registrations) return
      for (let list = 0; list < lists; list += 1) yield { kind: 'registrations', list, fromMs: 0, toMs: 0 }
    },
    /** Adjusts the length of the next windows to the number of rows in this window. */
    fit: (window: Window, rows: number): void => {
      if (rows === 0 || window.kind === 'registrations') return
      const before = Math.max(1, daysOf(window))
      const fitting = Math.floor((before * targetRows) / rows)
      days = Math.max(1, Math.min(fitting, before * MAX_GROWTH, MAX_DAYS))
    },
  }
}

/** Returns the halves of a window, or `undefined` if it cannot be divided. A window of several days is divided between two days. */
export function splitWindow(window: Window): readonly [Window, Window] | undefined {
  const { fromMs, toMs } = window
  const unit = toMs - fromMs > DAY_MS ? DAY_MS : MIN_WINDOW_MS
  const units = Math.ceil((toMs - fromMs) / unit)
  if (units < 2) return undefined
  const middle = fromMs + Math.floor(units / 2) * unit
  return [
    { ...window, toMs: middle },
    { ...window, fromMs: middle },
  ]
}
