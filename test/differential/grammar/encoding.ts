import fc from 'fast-check'

/** The ways to write decoded text into a request target (RFC 3986 2; HTML forms for `+`). */
const encodings: readonly ((text: string) => string)[] = [
  (text) => encodeURIComponent(text),
  // The form that a person types, encoded only where the request line or the separation of options would break.
  (text) =>
    Array.from(text, (char) => (/[!$'()*,./:;=?@\w~-]/.test(char) ? char : encodeURIComponent(char))).join(
      '',
    ),
  // HTML form encoding.
  (text) => encodeURIComponent(text).replaceAll('%20', '+'),
  // Every byte as an escape with lower-case digits.
  (text) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
]

const wellFormed = (text: string): string => text.toWellFormed()

/** Generates encodings of the texts. A failure shrinks to the usual encoding. */
export const encoded = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(texts, fc.constantFrom(0, 0, 0, 1, 1, 2, 3))
    .map(([text, way]) => (encodings[way] ?? encodeURIComponent)(wellFormed(text)))

/** Generates the spellings of an option name: with or without `$`, encoded or not, in upper or lower case (OData 4.01 Protocol 11.2.1). */
export const optionName = (name: string): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constant(`$${name}`) },
    { weight: 3, arbitrary: fc.constantFrom(name, `%24${name}`) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        `$${name.toUpperCase()}`,
        `$${name.slice(0, 1)}%${name.charCodeAt(1).toString(16)}${name.slice(2)}`,
      ),
    },
  )
