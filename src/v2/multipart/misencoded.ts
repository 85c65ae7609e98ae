/** The number of bytes that are examined. They suffice, because a program with a wrong encoding also encodes the first lines wrongly. */
const EXAMINED_BYTES = 65_536

/** Matches the beginning of UTF-16 text: a byte order mark, or four ASCII characters that each have a zero byte beside them. */
const UTF16 = /^(?:\xff\xfe|\xfe\xff|(?:[^\0]\0){4}|(?:\0[^\0]){4})/
/** Matches a line that frames the records (a delimiter, a header field or a request line), without the line end. */
const FRAMING = '(?:--|[\\w-]{1,64}:|[A-Z]{1,16} )[^\\r\\n]*'
const CR_CR_LF = new RegExp(`(?:^|\\n)${FRAMING}\\r\\r\\n`)
const CR_ALONE = new RegExp(`^\\r*${FRAMING}\\r[^\\n]`)

export function isUtf16(bytes: Buffer): boolean {
  return UTF16.test(bytes.toString('latin1', 0, 8))
}

/** Returns an error message if the encoding or line ends of a body make its delimiters unreadable (batch-wire F8), or `undefined`. */
export function describeMisencoding(bytes: Buffer): string | undefined {
  if (isUtf16(bytes)) return 'The body is encoded in UTF-16. Nothing was posted. Send the body in UTF-8.'
  const text = bytes.toString('latin1', 0, EXAMINED_BYTES)
  if (CR_CR_LF.test(text))
    return 'Lines of the body end in CR CR LF. Nothing was posted. Send CRLF. Write the body in binary mode, because text mode adds a CR before each LF.'
  if (CR_ALONE.test(text))
    return 'Lines of the body end in CR alone. Nothing was posted. Send CRLF at the end of each line.'
  return undefined
}
