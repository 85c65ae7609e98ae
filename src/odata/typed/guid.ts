const HYPHENS = [8, 13, 18, 23]
const LENGTH = 36
const [DIGIT, HYPHEN, OTHER] = [1, 2, 4]

/** The class of each ASCII character, and the class required at each position of a guid. */
const kinds = Uint8Array.from({ length: 128 }, (_, code) =>
  code === 0x2d ? HYPHEN : /[0-9a-f]/i.test(String.fromCharCode(code)) ? DIGIT : OTHER,
)
const wanted = Uint8Array.from({ length: LENGTH }, (_, at) => (HYPHENS.includes(at) ? HYPHEN : DIGIT))

/**
 * True for the text of an `Edm.Guid`: 8-4-4-4-12 hexadecimal digits in any case (OData ABNF `guidValue`). By tables, without a
 * branch for each digit: this runs seven times for every mark, and takes a third of the time of a regular expression.
 */
export function isGuid(text: string): boolean {
  if (text.length !== LENGTH) return false
  let wrong = 0
  for (let at = 0; at < LENGTH; at += 1) {
    const code = text.charCodeAt(at)
    wrong |= ((kinds[code & 127] ?? OTHER) ^ (wanted[at] ?? OTHER)) | (code >> 7)
  }
  return wrong === 0
}
