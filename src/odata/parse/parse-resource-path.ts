import type { PathSegment } from '../ast.ts'
import { Cursor, type QueryLimits } from './cursor.ts'
import { parseExpressionAt } from './parse-expression.ts'
import { parseResourceSegments } from './parse-path.ts'

/**
 * Reads a resource path below the service root from percent-decoded text, without a leading `/`: entity sets, keys,
 * navigation, `$count` and bound functions (OData URL conventions 4). An unqualified name with literal arguments reads
 * as a name and a key.
 *
 * @throws QueryError (`ADP_QUERY`, 400) with the character position
 * @example parseResourcePath("LearnerGroups(ExternalID=…,GroupType=SIMS.GroupTypeEnum'YearGroup')/LearnerIdentifiers")
 */
export function parseResourcePath(text: string, limits?: QueryLimits): readonly PathSegment[] {
  const cursor = new Cursor(text, limits)
  const segments = parseResourceSegments(cursor, parseExpressionAt)
  cursor.expectEnd('"/" or the end of the path')
  return segments
}
