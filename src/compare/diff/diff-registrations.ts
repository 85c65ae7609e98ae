import { compareMembers } from './compare-values.ts'
import { diffRows, type RecordDiff, type RowKind } from './diff-rows.ts'
import { createFindings, type Findings } from './findings.ts'
import type { DiffOptions } from './options.ts'
import { idOf, memberOf, type Members } from './values.ts'

function find(v2: Members, v3: Members, findings: Findings, { without }: DiffOptions): void {
  compareMembers('', v2, v3, findings, 0, without && ((name) => without.has(name)))
}

const registrations: RowKind = {
  keyOf: (document) => idOf(memberOf(document, 'ExternalID')),
  keyMembers: new Set(),
  compare: (v2, v3, options) => {
    const findings = createFindings(options.rules)
    find(v2, v3, findings, options)
    return findings.result()
  },
  find,
}

/**
 * Compares registrations as documents, aligned by ExternalID: one result for each document. Lists inside are aligned by ExternalID where
 * their elements have one, else by content. A document without an ExternalID is `unknown`. Error: `ADP_LIMIT` above `MAX_WINDOW_ROWS`.
 */
export function diffRegistrations(
  v2: readonly unknown[],
  v3: readonly unknown[],
  options: DiffOptions = {},
): readonly RecordDiff[] {
  return diffRows(v2, v3, registrations, options)
}
