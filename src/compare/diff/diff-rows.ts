import { AdapterError } from '../../errors.ts'
import type { Comparison } from '../verdict.ts'
import { type AlignedRecord, alignRows, type Keys, pairEqualFirst } from './align.ts'
import { reportCount } from './compare-values.ts'
import { createFindings, type Findings, SAME, UNKNOWN } from './findings.ts'
import { ROW_PATH } from './known-names.ts'
import { isIncreasing, movedPlaces } from './moved.ts'
import { type DiffOptions, MAX_WINDOW_ROWS, type RowOrder } from './options.ts'
import type { Members } from './values.ts'

/** One record and what was found. It holds rows of the services: read it and let it go, never keep or log it. */
export interface RecordDiff {
  readonly comparison: Comparison
  /** The row of each side, the first one where it has several; undefined: that side has none. */
  readonly v2: unknown
  readonly v3: unknown
}

/** How one kind of record is aligned and compared. */
export interface RowKind extends Keys {
  readonly compare: (v2: Members, v3: Members, options: DiffOptions) => Comparison
  /** Adds to findings what `compare` would say. */
  readonly find: (v2: Members, v3: Members, findings: Findings, options: DiffOptions) => void
}

const onlyV2: Comparison = { ...SAME, verdict: 'onlyV2' }
const onlyV3: Comparison = { ...SAME, verdict: 'onlyV3' }

/** Aligns and compares the rows of a window; one result for each record. Error: `ADP_LIMIT` for a larger window. */
export function diffRows(
  v2: readonly unknown[],
  v3: readonly unknown[],
  kind: RowKind,
  options: DiffOptions,
): readonly RecordDiff[] {
  if (v2.length > MAX_WINDOW_ROWS || v3.length > MAX_WINDOW_ROWS) {
    const message = `A comparison takes ${MAX_WINDOW_ROWS} rows of either side at a time: choose shorter windows of days.`
    throw new AdapterError('ADP_LIMIT', message)
  }
  const { records, v2Unknown, v3Unknown } = alignRows(v2, v3, kind)
  const moved = movedRecords(records, options.order)
  const diffs = records.map((record): RecordDiff => {
    const comparison = compareRecord(record, kind, options, moved?.has(record) === true)
    return { comparison, v2: record.v2[0], v3: record.v3[0] }
  })
  for (const row of v2Unknown) diffs.push({ comparison: UNKNOWN, v2: row, v3: undefined })
  for (const row of v3Unknown) diffs.push({ comparison: UNKNOWN, v2: undefined, v3: row })
  return diffs
}

function compareRecord(
  { v2, v3 }: AlignedRecord,
  kind: RowKind,
  options: DiffOptions,
  isMoved: boolean,
): Comparison {
  const [one, other] = [v2[0], v3[0]]
  if (one === undefined) return onlyV3
  if (other === undefined) return onlyV2
  if (!isMoved && v2.length === 1 && v3.length === 1) return kind.compare(one, other, options)
  const findings = createFindings(options.rules)
  if (v2.length === 1 && v3.length === 1) {
    kind.find(one, other, findings, options)
  } else {
    // A record that a service gives several times: equal rows belong together.
    for (const [left, right] of pairEqualFirst(v2, v3, (row) => [row]))
      kind.find(left, right, findings, options)
    if (v2.length !== v3.length) reportCount(ROW_PATH, v2.length, v3.length, findings)
  }
  if (isMoved) reportMoved(findings, options.order)
  return findings.result()
}

function reportMoved(findings: Findings, order: RowOrder | undefined): void {
  if (order !== 'asked') {
    findings.agree('order-unasked', ROW_PATH)
    return
  }
  const classes = { v2Class: 'place', v3Class: 'place' }
  findings.differ({ path: ROW_PATH, kind: 'order', ...classes, v2: undefined, v3: undefined })
}

/** The fewest records that explain the other order; undefined: none moved, or positions say nothing. */
function movedRecords(
  records: readonly AlignedRecord[],
  order: RowOrder | undefined,
): ReadonlySet<AlignedRecord> | undefined {
  if (order === 'free') return undefined
  const pairs = records.filter(({ v2At, v3At }) => v2At !== -1 && v3At !== -1)
  const places = pairs.map(({ v3At }) => v3At)
  if (isIncreasing(places)) return undefined
  return new Set([...movedPlaces(places)].flatMap((at) => pairs[at] ?? []))
}
