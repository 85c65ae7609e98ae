import { isGuid, parseKey, QueryError } from '../odata/index.ts'

const limits = { maxLength: 4_096, maxDepth: 20 }

/**
 * The guid in the key predicate at the end of a decoded path: `Set(<guid>)` or `Set(ExternalID=<guid>)`, with blanks in the
 * parentheses and with the guid in apostrophes or not, as the legacy service accepts it. Undefined for any other key.
 */
export function readGuidKey(path: string): string | undefined {
  const segment = path.replace(/\/$/, '').split('/').at(-1) ?? ''
  const at = segment.indexOf('(')
  if (at < 0) return undefined
  try {
    const [part, ...others] = parseKey(segment.slice(at), limits)
    if (part === undefined || others.length > 0 || (part.name ?? 'ExternalID') !== 'ExternalID')
      return undefined
    const { value } = part
    return value.kind === 'literal' && isGuid(value.value) ? value.value : undefined
  } catch (error) {
    if (error instanceof QueryError) return undefined
    throw error
  }
}
