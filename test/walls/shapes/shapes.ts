/** A shape of text. `make` builds a text of about `size` characters. */
export type Shape = readonly [name: string, make: (size: number) => string]

const filled = (piece: string, before = '', after = ''): Shape => [
  JSON.stringify(`${before}${piece}…${after}`),
  (size) => `${before}${piece.repeat(Math.max(1, Math.floor(size / piece.length)))}${after}`,
]

const counted = (
  name: string,
  length: number,
  item: (index: number) => string,
  before = '',
  after = '',
): Shape => [
  name,
  (size) =>
    `${before}${Array.from({ length: Math.max(1, Math.floor(size / length)) }, (_, n) => item(n)).join('')}${after}`,
]

/** Shapes that are expensive for a careless reader: repeated delimiters, repeated prefixes of delimiters, and text that never ends. */
export const shapes: readonly Shape[] = [
  ...['x', ' ', '\t', '\n', '\r\n', '\n\n', '-', '--', '--\n', 'x--\n', '\n-', '\n--b', '\n--bx', '--b \n', '--b--\n'].map((piece) => filled(piece)),
  ...['a:b\n', 'a: b\r\n', ' folded\n', ':', ',', ';', 'a,', 'a;b=c', 'a=b&', '=', '/', '/a', '/*a', '%25', '%', '%zz', '.', '1,', '1'].map((piece) => filled(piece)),
  ...['"', '\\', '\\"', "'", "''", '""', '[', '{', '(', ')', '{"a":', '[],', '{},', 'not ', 'a eq 1 or ', '<', '&', '|', '#', '\0', '\u00e9', '\u20ac'].map((piece) => filled(piece)),
  ...['aaaa ', 'a b ', 'HTTP/1.1 200 OK\n', 'Content-Type: application/http\n', 'Content-Length: 1\n', 'bearer ', 'metadata ', 'return ', '- a\n', 'a: [\n', '*a ', '&a '].map((piece) => filled(piece)),
  filled('x', '"'), filled('\\"', '"'), filled('\\\\', '"', '"'), filled(' ', 'x', 'x'), filled(' ', 'Content-Length: 1', 'x\n'), filled('\t', 'a:', 'b\n'),
  filled('x', '{"a":"', '"}'), filled('\\u0041', '{"a":"', '"}'), filled('\\n', '{"Comment":"', '"}'), filled('1', '{"a":', '}'), filled('[],', '{"a":[', '1]}'), filled(' ', '{', '}'),
  filled('{"ExternalID":"1"},', '{"value":[', '{}]}'), filled('"http://v3.test/x",', '[', '1]'), filled('"@odata.nextLink":"http://v3.test/x",', '{', '"a":1}'),
  filled('{"id":"1","status":201,"body":{}},', '{"responses":[', '{}]}'), filled('{"code":"E","message":"not found"},', '{"error":{"code":"E","message":"m","details":[', '{}]}}'),
  filled('--b\nContent-Type: application/http\n\nHTTP/1.1 201 Created\n\n{}\n', '', '--b--'),
  filled('--b\nContent-Type: application/http\n\nPOST AttendanceRecords HTTP/1.1\n\n{}\n', '', '--b--'),
  filled('--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n', '', '--b--'),
  filled('a:b\n', '--b\nContent-Type: application/http\n', '\nHTTP/1.1 201 Created\n\n{}\n--b--'), filled('a:b\n', '--b\nContent-Type: application/http\n\nHTTP/1.1 201 Created\n', '\n{}\n--b--'),
  counted('members with distinct names', 10, (n) => `"${n.toString(36)}":1,`, '{', '"":1}'),
  counted('rows with distinct names', 14, (n) => `{"${n.toString(36)}":1},`, '{"value":[', '{}]}'),
  counted('lines with distinct delimiters', 9, (n) => `--${n.toString(36)}:\n`),
  counted('distinct delimiters, each of which is closed', 16, (n) => `--${n.toString(36)}\n--${n.toString(36)}--\n`),
  counted('options with distinct names', 8, (n) => `o${n.toString(36)}=1&`),
  counted('aliases that each refer to the next', 16, (n) => `@a${n}=@a${n + 1}&`, 'Present eq @a0&'),
  counted('fields with distinct names', 9, (n) => `x${n.toString(36)}: y\r\n`),
  counted('keys with distinct names', 8, (n) => `k${n.toString(36)}: 1\n`),
] // prettier-ignore
