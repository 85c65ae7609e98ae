/** Maximum nesting depth, which is about ten times the depth of real replies. The limit protects recursive code from a stack overflow. */
const MAX_NESTING = 128

/** The `maxNodes` of the reply to one record, which has about thirty brackets and commas. */
export const MAX_RECORD_NODES = 4_096
/** The `maxNodes` of a text that is parsed at once. A node takes up to a microsecond. A page of 1,000 marks has 20,000 nodes. */
export const MAX_NODES_AT_ONCE = 32_768
/** The `maxNodes` of a page that is parsed in pieces, or in a thread that serves no client. A node takes up to a hundred bytes. */
export const MAX_PAGE_NODES = 131_072

/** The length in characters up to which any text is parsed within a few milliseconds. */
const SHORT_LENGTH = 65_536

/**
 * Parses JSON, after a byte order mark if there is one (RFC 8259 8.1). Returns `undefined` if the text is not JSON or is nested deeper than
 * 128 levels. Also returns `undefined` for a long text with more than `maxNodes` nodes: opening brackets and commas outside strings.
 */
export function parseJson(text: string, maxNodes = Number.POSITIVE_INFINITY): unknown {
  const isLong = text.length > SHORT_LENGTH && Number.isFinite(maxNodes)
  if ((isLong && countNodes(text, maxNodes) > maxNodes) || isTooDeep(text)) return undefined
  try {
    return JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text) as unknown
  } catch {
    return undefined
  }
}

const [QUOTE, COMMA, OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x2c, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d,
]

/** Counts the nodes of a text: its opening brackets and commas outside strings. Stops at `max` + 1. */
export function countNodes(text: string, max: number): number {
  return measure(text, max, Number.POSITIVE_INFINITY).nodes
}

function isTooDeep(text: string): boolean {
  // Most replies have too few brackets to be nested too deep. Searching for brackets is faster than examining every character.
  if (!hasMany(text, '[', '{', MAX_NESTING)) return false
  return measure(text, Number.POSITIVE_INFINITY, MAX_NESTING).depth > MAX_NESTING
}

/** Counts nodes and open levels. Stops once either exceeds its maximum. */
function measure(text: string, maxNodes: number, maxDepth: number): { nodes: number; depth: number } {
  let nodes = 0
  let depth = 0
  let isInString = false
  for (let at = 0; at < text.length && nodes <= maxNodes && depth <= maxDepth; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isInString = !isInString
    else if (isInString) at += code === BACKSLASH ? 1 : 0
    else if (code === COMMA) nodes += 1
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      nodes += 1
      depth += 1
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1
  }
  return { nodes, depth }
}

function hasMany(text: string, one: string, other: string, max: number): boolean {
  let count = 0
  for (const wanted of [one, other])
    for (let at = text.indexOf(wanted); at >= 0 && count <= max; at = text.indexOf(wanted, at + 1)) count += 1
  return count > max
}
