export const DAY_MS = 86_400_000

/** The day of a time, `YYYY-MM-DD`, in UTC. */
export function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** Session starts from `fromMs`, before `toMs`, of some learners or of all; registrations have no days. */
export interface Window {
  readonly kind: 'marks' | 'registrations'
  /** Index of the list of learners. */
  readonly list: number
  readonly fromMs: number
  readonly toMs: number
}

/** Where a run begins or continues: the windows before it are done. */
interface RunPosition {
  readonly kind: Window['kind']
  readonly list: number
  readonly fromMs: number
  /** Length of the next window, which follows from the rows of those before. */
  readonly days: number
}

interface WindowPlanOptions {
  readonly fromMs: number
  /** The first moment after the last day. */
  readonly toMs: number
  /** Lists of learners that are read one after another; 1 where all are read at once. */
  readonly lists: number
  /** True: one window for the registrations of each list follows the marks. */
  readonly registrations: boolean
  /** Rows that a window is to have, at most about. */
  readonly targetRows: number
  /** Undefined: the beginning. */
  readonly start: RunPosition | undefined
}

/** Days that the service lets one read span (service-facts 1). */
const MAX_DAYS = 90
/** Length of the first window: two rows a learner and day, so that a week of a school has some 7,000. */
const FIRST_DAYS = 7
/** A window that is partly of holidays says little of the next one, and one without rows says nothing. */
const MAX_GROWTH = 2
/** A window that cannot be divided any further. */
const LEAST_MS = 3_600_000

/** Plans windows of days, about as long as gives `targetRows`; narrow ranges are faster than wide ones (service-facts 18). */
export function planWindows(options: WindowPlanOptions) {
  const { fromMs, toMs, lists, registrations, targetRows, start } = options
  const daysOfList = Math.round((toMs - fromMs) / DAY_MS)
  const first: RunPosition = { kind: 'marks', list: 0, fromMs, days: FIRST_DAYS }
  let { kind, list, fromMs: from, days } = start ?? first
  return {
    /** Days of all windows of marks, each counted for each list. */
    days: daysOfList * lists,
    daysBefore: (before: RunPosition): number =>
      before.kind === 'registrations'
        ? daysOfList * lists
        : before.list * daysOfList + Math.round((before.fromMs - fromMs) / DAY_MS),
    /** The windows that are left, each planned once the one before was fitted. */
    windows: function* (): Generator<Window> {
      for (; kind === 'marks' && list < lists; list += 1) {
        while (from < toMs) {
          const window = { kind, list, fromMs: from, toMs: Math.min(toMs, from + days * DAY_MS) }
          from = window.toMs
          yield window
        }
        from = fromMs
      }
      if (!registrations) return
      if (kind === 'marks') [kind, list] = ['registrations', 0]
      while (list < lists) yield { kind, list: list++, fromMs: 0, toMs: 0 }
    },
    /** Behind the last window that was given. */
    position: (): RunPosition => ({ kind, list, fromMs: from, days }),
    /** Fits the length of the next windows to the rows that this one had. */
    fit: (window: Window, rows: number): void => {
      if (rows === 0 || window.kind === 'registrations') return
      const before = Math.max(1, Math.round((window.toMs - window.fromMs) / DAY_MS))
      const fitting = Math.floor((before * targetRows) / rows)
      days = Math.max(1, Math.min(fitting, before * MAX_GROWTH, MAX_DAYS))
    },
  }
}

/** The halves of a window, at a day's end where it has several days; undefined for one that cannot be divided. */
export function splitWindow(window: Window): readonly [Window, Window] | undefined {
  const { fromMs, toMs } = window
  const unit = toMs - fromMs > DAY_MS ? DAY_MS : LEAST_MS
  const units = Math.ceil((toMs - fromMs) / unit)
  if (units < 2) return undefined
  const middle = fromMs + Math.floor(units / 2) * unit
  return [
    { ...window, toMs: middle },
    { ...window, fromMs: middle },
  ]
}
