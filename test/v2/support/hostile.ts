/** The start of a part in a batch with the boundary `b`, up to the request line. */
export const MIME = '--b\nContent-Type: application/http\n'
export const LINE = 'POST AttendanceRecords HTTP/1.1\n'

export const batchOf = (json: string): string => `${MIME}\n${LINE}\n${json}\n--b--\n`

/** A hostile body. `expected` is the number of its parts, or the code of the error if the body is rejected. */
export type HostileBody = [what: string, expected: number | string, text: () => string, boundary?: string]

/** Returns bodies of about `size` bytes that are expensive for a careless reader. Bodies of 2 MiB exceed every limit. */
export function hostileBodies(size: number): HostileBody[] {
  const fill = (piece: string): string => piece.repeat(Math.ceil(size / piece.length))
  const record = batchOf
  return [
    ['lines that resemble delimiters', 'ADP_LIMIT', () => record(`{}\n${fill('--bb\n')}`)],
    ['lines that resemble delimiters before the first one', 'ADP_LIMIT', () => fill('--bb\n')],
    ['delimiters followed by text', 'ADP_LIMIT', () => record(`{}\n${fill('--b x\n')}`)],
    ['delimiters followed by spaces and text', 'ADP_LIMIT', () => record(`{}\n${fill(`--b${' '.repeat(250)}x\n`)}`)],
    ['lines that end with two dashes', 'ADP_TRUNCATED', () => fill('x--\n')],
    ['a batch after lines that end with two dashes', 1, () => fill('x--\n') + record('{}')],
    ['lines that begin with a dash', 'ADP_TRUNCATED', () => fill('\n-')],
    ['a part of spaces', 0, () => `--b\n${fill(' ')}\n--b--`],
    ['a part of line ends', 0, () => `--b\n${fill('\r\n')}\n--b--`],
    ['delimiters within a line', 1, () => record(`{}\n${fill('x--b--')}`)],
    ['a row of dashes if the boundary is dashes', 'ADP_TRUNCATED', () => `-------\n${fill('-')}`, '-----'],
    ['short rows of dashes if the boundary is dashes', 'ADP_LIMIT', () => `-------\n${fill('--------\n')}`, '-----'],
    ['lines that resemble a boundary of 70 characters', 1, () => record(`{}\n${fill(`--${'b'.repeat(69)}\n`)}`).replaceAll(/^--b(?=$|--$)/gm, `--${'b'.repeat(70)}`), 'b'.repeat(70)],
    ['opening lines that look like headers', 'ADP_TRUNCATED', () => `${Array.from({ length: 75_000 }, (_, n) => `--a${n}:`).join('\n')}\n`],
    ['opening lines of many boundaries', 'ADP_LIMIT', () => Array.from({ length: size / 8 }, (_, n) => `--a${n}\n--a${n}--\n`).join('')],
    ['delimiters without parts', 'ADP_PART_TYPE', () => `${fill('--b\n')}--b--`],
    ['empty changesets', 'ADP_TOO_LARGE', () => `${fill('--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n')}--b--`],
    ['a boundary line with long padding', 'ADP_LIMIT', () => `--b${fill(' ')}\n--b--`],
    ['an endless header line', 'ADP_LIMIT', () => `--b\nA: ${fill('x')}\n--b--`],
    ['an endless header name', 'ADP_LIMIT', () => `--b\n${fill('x')}\n--b--`],
    ['an endless request line', 'ADP_LIMIT', () => `${MIME}\nPOST ${fill('x')} HTTP/1.1\n\n{}\n--b--`],
    ['many header lines', 'ADP_LIMIT', () => `--b\n${fill('A: b\n')}\n--b--`],
    ['many folded lines', 'ADP_LIMIT', () => `--b\nA: b\n${fill(' c\n')}\n--b--`],
    ['parts with many folded lines', 'ADP_LIMIT', () => `${fill(`${MIME}${' c\n'.repeat(20_000)}\n`)}--b--`],
    ['blank lines before the request line', 'ADP_LIMIT', () => `${MIME}\n${fill('\n')}${LINE}\n{}\n--b--`],
    ['blank lines before the JSON', 1, () => record(fill('\n'))],
    ['a preamble of blank lines', 1, () => fill('\n') + record('{}')],
    ['an epilogue of delimiters', 1, () => record('{}') + fill('--b\n')],
    ['deeply nested JSON lists', 1, () => record(`{"a":${fill('[')}`)],
    ['deeply nested JSON objects', 1, () => record(fill('{"a":'))],
    ['JSON with many members', 1, () => record(`{${Array.from({ length: size / 16 }, (_, n) => `"a${n}":1`).join()}}`)],
    ['a member whose value has many members', 1, () => record(`{"a":{${Array.from({ length: size / 16 }, (_, n) => `"a${n}":1`).join()}}}`)],
    ['a string of escapes', 1, () => record(`{"Comment":"${fill('\\u0041')}"}`)],
    ['a string that never ends', 1, () => record(`{"Comment":"${fill('x')}`)],
    ['a long number', 1, () => record(`{"MinutesLate":${fill('1')}}`)],
    ['a long percent encoding', 'ADP_TARGET', () => `${MIME}\nPOST ${'%25'.repeat(20_000)} HTTP/1.1\n\n{}\n--b--`],
    ['a long Prefer header', 1, () => `${MIME}\n${LINE}Prefer: ${' return'.repeat(9_000)}\n\n{}\n--b--`],
  ] // prettier-ignore
}

/** Records that exceed a limit, and the message of the fault. */
export const costlyRecords: readonly [what: string, json: string, message: RegExp][] = [
  ['members', `{${Array.from({ length: 1_001 }, (_, n) => `"a${n}":1`).join()}}`, /1000 members/],
  ['members in a nested value', `{"a":{${Array.from({ length: 1_000 }, (_, n) => `"a${n}":1`).join()}}}`, /1000 members/],
  ['array elements', `{"a":[${'1,'.repeat(1_000)}1]}`, /1000 members/],
  ['escapes', `{"Comment":"${'\\n'.repeat(65_537)}"}`, /65536 backslash/],
  ['escapes in several strings', `{"Comment":"${'\\n'.repeat(40_000)}","b":"${'\\n'.repeat(40_000)}"}`, /65536 backslash/],
] // prettier-ignore
