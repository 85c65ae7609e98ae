/**
 * The content of a comment without the details of form that a service may change: Unicode normal form, line ends, runs of blanks,
 * blanks at the ends. Comments that differ only in these are equal.
 */
function contentOf(comment: string): string {
  return comment.normalize('NFD').replaceAll(/\s+/g, ' ').trim()
}

/** True when both comments have the same content. */
export function isSameComment(posted: string, stored: string): boolean {
  return posted === stored || contentOf(posted) === contentOf(stored)
}

/** A lone surrogate, which a cut may leave at the end. */
const brokenEnd = /[\uD800-\uDBFF\uFFFD]+$/

/**
 * True when the stored comment may be the beginning of the posted one. `cutLength`: where the service is known to cut;
 * undefined: anywhere, but not before `wholeLength`, since a comment of that length was stored whole.
 */
export function isCutComment(posted: string, stored: string, cutLength?: number, wholeLength = 0): boolean {
  if (cutLength !== undefined)
    return formsOf(posted).some((form) => isSameComment(form.slice(0, cutLength), stored))
  const rest = posted.slice(stored.length)
  const blanks = rest.length - rest.trimStart().length
  if (stored.length + blanks < wholeLength) return false
  const content = contentOf(stored.replace(brokenEnd, ''))
  return content !== '' && contentOf(posted).startsWith(content)
}

/** A comment in each form that a service may store before it cuts; their lengths differ. */
function formsOf(comment: string): readonly string[] {
  const lines = comment.replaceAll(/\r\n?/g, '\n')
  const ends = [comment, lines, lines.replaceAll('\n', '\r\n'), comment.replaceAll(/\s+/g, ' ')]
  const trimmed = ends.flatMap((form) => [form, form.trim()])
  return trimmed.flatMap((form) => [form, form.normalize('NFC'), form.normalize('NFD')])
}
