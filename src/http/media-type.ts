import { AdapterError } from '../errors.ts'

/** A parsed media type (RFC 9110 8.3.1). `type` and the names of parameters are in lower case. */
export interface MediaType {
  readonly type: string
  /** The parameters in the order in which they are written. A name may occur twice. */
  readonly parameters: readonly (readonly [name: string, value: string, isQuoted: boolean])[]
}

const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y

const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f]/
// An unquoted value may contain more than a token, because legacy clients put `/`, `:`, `=` or `?` into a boundary.
const BARE_VALUE = /[^;"\s]+/y
// Optional white space (RFC 9110 5.6.3).
const OWS = /[ \t]*/y

/**
 * Parses a media type, tolerating the notations of legacy clients (batch-wire F5). Throws `ADP_HEADER` for control characters or broken
 * syntax (batch-wire F6).
 */
export function parseMediaType(text: string): MediaType {
  if (CONTROL.test(text)) throw malformed('contains a control character')
  let at = 0
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0] ?? ''
    at += found.length
    return found
  }
  take(OWS)
  const main = take(TOKEN)
  const slash = text[at] === '/'
  if (slash) at += 1
  const sub = slash ? take(TOKEN) : ''
  if (main === '' || sub === '') throw malformed('is not of the form type/subtype')
  const parameters: [string, string, boolean][] = []
  for (;;) {
    take(OWS)
    if (at === text.length) break
    if (text[at] !== ';') throw malformed('has text after a value')
    at += 1
    take(OWS)
    if (at === text.length || text[at] === ';') continue // a semicolon without a parameter is ignored
    const name = take(TOKEN).toLowerCase()
    take(OWS)
    if (name === '' || text[at] !== '=') throw malformed('has a parameter without a value')
    at += 1
    take(OWS)
    if (text[at] === '"') {
      const quoted = readQuoted(text, at)
      at = quoted.end
      parameters.push([name, quoted.value, true])
    } else {
      parameters.push([name, take(BARE_VALUE), false])
    }
  }
  return { type: `${main}/${sub}`.toLowerCase(), parameters }
}

/** Returns the first value of a parameter, or `undefined` if the media type has no such parameter. `name` is in lower case. */
export function parameterOf(media: MediaType, name: string): string | undefined {
  return media.parameters.find(([own]) => own === name)?.[1]
}

/** Returns the WHATWG name of the charset with this label, or `undefined` if no charset has the label. */
export function encodingOf(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding
  } catch {
    return undefined
  }
}

// Reads a quoted string (RFC 9110 5.6.4).
function readQuoted(text: string, start: number): { value: string; end: number } {
  let value = ''
  for (let at = start + 1; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (char === '"') return { value, end: at + 1 }
    if (char === '\\') at += 1
    value += text.charAt(at)
  }
  throw malformed('has a quote that is never closed')
}

function malformed(what: string): AdapterError {
  return new AdapterError(
    'ADP_HEADER',
    `The Content-Type ${what}. Write the Content-Type as RFC 9110 8.3 requires.`,
  )
}
