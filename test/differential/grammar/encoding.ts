import fc from 'fast-check'

/** Functions that encode text for a request target in different ways (RFC 3986 2; `+` for a space as in HTML forms). */
const encodings: readonly ((text: string) => string)[] = [
  (text) => encodeURIComponent(text),
  // Encodes only characters that would break the request line or end the option, as in a URL that a person types.
  (text) =>
    Array.from(text, (char) => (/[!$'()*,./:;=?@\w~-]/.test(char) ? char : encodeURIComponent(char))).join(
      '',
    ),
  // Encodes the text as an HTML form does.
  (text) => encodeURIComponent(text).replaceAll('%20', '+'),
  // Escapes every byte, with lower-case hexadecimal digits.
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
