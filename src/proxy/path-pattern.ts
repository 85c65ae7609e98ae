/**
 * Creates a function that returns true if a path matches `pattern`. The path is given as its segments in lower case. Within a segment, `*`
 * matches any characters. As a whole segment, `*` matches at least one character, and `**` any number of segments. At the end of a pattern,
 * `**` matches at least one segment, which may be empty. A trailing slash of the path matters only if the pattern ends in `/` or `**`.
 *
 * The cost is at most the length of the path times the length of the pattern. After a mismatch only the last `*` and the last `**` are
 * extended, so each character is compared with each character of the pattern at most once.
 */
export function createPathTest(pattern: string): (segments: readonly string[]) => boolean {
  const segments = pattern.toLowerCase().split('/')
  const last = segments.at(-1) ?? ''
  const wanted = last === '**' ? [...segments, ''] : segments
  const isOpen = last === '**' || last === ''
  const fitsSegment = (own: string, text: string, index: number): boolean => {
    if (own === text) return true
    if (last === '**' && index === segments.length) return true
    if (own === '*') return text !== ''
    return own.includes('*') && fits(Array.from(own), Array.from(text), isStar, equals)
  }
  return (path) =>
    fits(wanted, !isOpen && path.at(-1) === '' ? path.slice(0, -1) : path, isStars, fitsSegment)
}

export const segmentsOf = (path: string): readonly string[] => path.toLowerCase().split('/')

const isStars = (segment: string): boolean => segment === '**'
const isStar = (char: string): boolean => char === '*'
const equals = (own: string, other: string): boolean => own === other

/** Returns true if the items match a pattern. A member of the pattern for which `isRun` is true matches any number of items. */
function fits(
  pattern: readonly string[],
  items: readonly string[],
  isRun: (own: string) => boolean,
  fitsOne: (own: string, item: string, index: number) => boolean,
): boolean {
  let index = 0
  let at = 0
  let resume: { readonly index: number; at: number } | undefined
  for (;;) {
    const own = pattern[index]
    const item = items[at]
    if (own !== undefined && isRun(own)) {
      index += 1
      resume = { index, at }
    } else if (item === undefined) return own === undefined
    else if (own !== undefined && fitsOne(own, item, index)) {
      index += 1
      at += 1
    } else if (resume === undefined) return false
    else {
      resume.at += 1
      index = resume.index
      at = resume.at
    }
  }
}
