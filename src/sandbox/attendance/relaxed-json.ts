/**
 * Reads JSON whose strings may be in single quotes (service.md 4, rule 2 for POST). Undefined for faulty text:
 * the value of a JSON text is never undefined.
 */
export function parseRelaxedJson(text: string): unknown {
  const strict = parse(text)
  return strict === undefined && text.includes("'") ? parse(toDoubleQuotes(text)) : strict
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A string in either kind of quotes, closed or not, or the text up to the next one. */
const PIECE = /"(?:[^"\\]|\\[^])*"?|'(?:[^'\\]|\\[^])*'?|[^"']+/g

/** Rewrites single-quoted strings; everything else stays, so that faulty text stays faulty. */
function toDoubleQuotes(text: string): string {
  return text.replace(PIECE, (piece) => {
    if (!piece.startsWith("'") || piece.length < 2 || !piece.endsWith("'")) return piece
    // \' is an escape of single-quoted text only; a bare " must get one.
    return `"${piece.slice(1, -1).replace(/\\'|"|\\[^]/g, (part) => (part === "\\'" ? "'" : part === '"' ? '\\"' : part))}"`
  })
}
