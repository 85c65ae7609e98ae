import fc from 'fast-check'

/** Ways to write decoded text into a request target (RFC 3986 2; HTML forms for `+`). */
const encodings: readonly ((text: string) => string)[] = [
  (text) => encodeURIComponent(text),
  // What a person types: encoded only where the request line or the split of options would break.
  (text) =>
    Array.from(text, (char) => (/[!$'()*,./:;=?@\w~-]/.test(char) ? char : encodeURIComponent(char))).join(
      '',
    ),
  // Form encoding.
  (text) => encodeURIComponent(text).replaceAll('%20', '+'),
  // Every byte, digits of escapes in lower case.
  (text) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
]

const wellFormed = (text: string): string => text.toWellFormed()

/** The decoded text in one of the encodings; shrinks to the usual one. */
export const encoded = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(texts, fc.constantFrom(0, 0, 0, 1, 1, 2, 3))
    .map(([text, way]) => (encodings[way] ?? encodeURIComponent)(wellFormed(text)))

/** A name in the spellings that are one option: `$` or not, encoded or not, any case (OData 4.01 Protocol 11.2.1). */
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
