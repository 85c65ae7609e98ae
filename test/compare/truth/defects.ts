import type { Defect } from './break-sources.ts'

/** Deliberate defects in the comparison code. With each defect, `runCampaign` must find wrong reports. */
export const defects: Readonly<Record<string, Defect>> = {
  'ignores a field': {
    module: 'compare/diff/compare-values.ts',
    from: 'if (isControlName(name)) continue',
    to: "if (isControlName(name) || name === 'RecordedBy') continue",
  },
  'aligns by position': {
    module: 'compare/diff/align.ts',
    from: 'const key = keyOf(row)',
    to: 'const key = keyOf(row) && String(at)',
  },
  'swaps the sides': {
    module: 'compare/diff/compare-pair.ts',
    from: 'findDifferences(one, other, pair, findings)',
    to: 'findDifferences(other, one, pair, findings)',
  },
  'drops a page': {
    module: 'compare/run/sides.ts',
    from: 'for (const row of page.rows) rows.push(row)',
    to: 'if (followed.size !== 2) for (const row of page.rows) rows.push(row)',
  },
  'skips days between windows': {
    module: 'compare/run/windows.ts',
    from: 'from = until\n',
    to: 'from = until + DAY_MS\n',
  },
  'counts a verdict twice': {
    module: 'compare/tally.ts',
    from: "add('verdict', [kind, verdict])",
    to: "add('verdict', [kind, verdict], verdict === 'differs' ? 2 : 1)",
  },
  'treats null as missing': {
    module: 'compare/diff/compare-values.ts',
    from: "if (v2 === null || v3 === null) return 'null'",
    to: 'if (v2 === null || v3 === null) return undefined',
  },
  'reports another type as another value': {
    module: 'compare/diff/compare-values.ts',
    from: 'typeof v2 === typeof v3 && ',
    to: '',
  },
  'ignores shifts of whole hours': {
    module: 'compare/diff/values.ts',
    from: 'return rest === 0 ||',
    to: 'return rest % 3_600e9 === 0 ||',
  },
  'compares GUIDs case-sensitively': {
    module: 'compare/diff/values.ts',
    from: 'one.toLowerCase() === other.toLowerCase()',
    to: 'one === other',
  },
  'aligns by case-sensitive ids': {
    module: 'compare/diff/values.ts',
    from: 'return value.toLowerCase()',
    to: 'return value',
  },
  'counts rows with the same id once': {
    module: 'compare/diff/align.ts',
    from: 'else first.rows.push(row)',
    to: '',
  },
  'drops records that only V3 has': {
    module: 'compare/diff/align.ts',
    from: 'for (const record of v3) if (!paired.has(record)) records.push({ v2: nothing, v3: record })',
    to: '',
  },
  'aligns marks by id only': {
    module: 'compare/diff/compare-pair.ts',
    from: 'otherKeyOf: pairKeyOf,',
    to: 'otherKeyOf: () => undefined,',
  },
  'loses records that are read again': {
    module: 'compare/run/compare-window.ts',
    from: 'rows: [...others, ...compare(v3.rows)]',
    to: 'rows: others',
  },
  'treats differences as noise': {
    module: 'compare/run/compare-window.ts',
    from: '? compare(again.rows) : []',
    to: '? compare(v3.rows) : []',
  },
  'ignores the order of rows': {
    module: 'compare/diff/align.ts',
    from: 'const moved = new Set(pairs)',
    to: 'const moved = new Set()',
  },
}
