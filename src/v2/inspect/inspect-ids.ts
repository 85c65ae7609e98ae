import type { Batch } from '../batch/batch.ts'
import { readBoundary } from '../multipart/boundary.ts'
import type { Finding } from './finding.ts'
import { firstBoundary } from './guess-boundary.ts'

/** How many changesets a finding names. */
const NAMED = 3

/** The id rule: a client whose ids differ does not get the outcomes of its records (service.md 4.2; batch-wire 3, F12). */
export function inspectIds(batch: Batch, contentType: string | undefined): Finding[] {
  const header = readBoundary(contentType)
  if (!batch.idsAgree) {
    return [
      {
        severity: 'warning',
        code: 'idsDiffer',
        message:
          `Content-Type names the boundary "${header}"; the body has ${namesOf(batch)}. ` +
          'Their ids differ, so the answer is one 200 without parts per record.',
        remedy: 'Use the same id in the header and in the body; then every record gets its own status.',
      },
    ]
  }
  if (header === batch.boundary) return []
  return [
    {
      severity: 'note',
      code: 'boundaryIsNotOuter',
      message:
        `Content-Type names the boundary "${header}", but "${batch.boundary}" frames the body. ` +
        'The ids agree, so it is accepted.',
      remedy: 'Name the boundary of the first delimiter line, as RFC 2046 has it.',
    },
  ]
}

/** Both boundaries of a body that cannot be decoded, where its first delimiter line is not of the one in the header. */
export function inspectDelimiters(bytes: Buffer, boundary: string): Finding[] {
  const first = firstBoundary(bytes)
  if (first === undefined || first === boundary) return []
  return [
    {
      severity: 'warning',
      code: 'boundariesDiffer',
      message: `Content-Type names the boundary "${boundary}"; the first delimiter line of the body is that of "${first}".`,
      remedy: 'Name the boundary of the first delimiter line in Content-Type.',
    },
  ]
}

/** `the boundary "b" and the changesets "c", "d"` */
function namesOf({ boundary, changesets }: Batch): string {
  const names = changesets.slice(0, NAMED).map((name) => `"${name}"`)
  const others = changesets.length - names.length
  if (names.length === 0) return `the boundary "${boundary}"`
  const more = others > 0 ? ` and ${others} more` : ''
  return `the boundary "${boundary}" and the changeset${changesets.length === 1 ? '' : 's'} ${names.join(', ')}${more}`
}
