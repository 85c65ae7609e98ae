import { pairsOf } from '../wire-exchange.ts'
import type { RecordedExchange, RecordedMessage } from './exchange.ts'
import { splitMessage } from './split-message.ts'

/** The headers, of messages and of their parts, whose values are kept. The values of all other headers are masked or removed. */
const keptHeaders: ReadonlySet<string> = new Set([
  'accept',
  'accept-charset',
  'content-id',
  'content-length',
  'content-transfer-encoding',
  'content-type',
  'content-encoding',
  'odata-maxversion',
  'odata-version',
  'dataserviceversion',
  'maxdataserviceversion',
  'prefer',
  'preference-applied',
  'retry-after',
])

/** OData query options, whose values are kept since they hold no credentials. V2 also accepts them without `$` (service.md 1.1). */
const keptOption =
  /^(?:%24|\$)?(?:filter|select|expand|orderby|top|skip|count|format|search|levels|compute|skiptoken)$/i
/** The parameters of kept headers, such as `boundary`, whose values are kept. The values of all other parameters are masked. */
const keptParameter =
  /^(?:boundary|charset|msgtype|type|version|q|return|wait|maxpagesize|continue-on-error|ieee754compatible|(?:odata\.)?[\w.]*(?:metadata|streaming))$/i

/**
 * Matches a header line. An indented line and a line that begins with `:` match too, because parsers append them to the preceding header.
 */
const HEADER = /^[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*)?:/
const REQUEST = /^([A-Za-z]+[ \t]+)(\S(?:.*\S)?)([ \t]+HTTP\/\d.*)$/
/**
 * Matches a JWT together with the letters, digits and hyphens directly before it, or credentials after `bearer` or `basic`. The match
 * starts at the first of these characters, because a search that starts at every `eyJ` among them would take quadratic time.
 */
const TOKEN =
  /(?<![\w-])(?=[\w-]*?\beyJ[\w-]{8})[\w-]+\.[\w-]{8,}\.[\w-]*|\b(?:bearer|basic)[ \t]+[\w.~+/-]{16,}=*/gi
/** A cheaper expression that matches every token and skips most other texts. */
const TOKEN_HINT = /eyj|bearer|basic/i
const TOKEN_START = /\b(?:eyJ|(?:bearer|basic)[ \t])/i

const isKeptHeader = (name: string): boolean => keptHeaders.has(name.toLowerCase())

/**
 * Masks unlisted headers in bodies, query options that do not belong to OData, and tokens in texts. Removes unlisted headers of the reply.
 */
export function maskExchange(exchange: RecordedExchange): RecordedExchange {
  const { target, request, reply } = exchange
  return {
    ...exchange,
    target: maskTarget(target),
    request: { ...request, body: maskBody(request) },
    reply: {
      ...reply,
      fields: pairsOf(reply)
        .filter(([name]) => isKeptHeader(name))
        .flat(),
      body: maskBody(reply),
    },
  }
}

function maskBody(message: RecordedMessage): Buffer {
  const masked = [...splitMessage(message)].map(({ isFraming, bytes }) => {
    const text = bytes.toString('latin1')
    const shown = isFraming ? maskLines(text) : maskTokens(text)
    return shown === text ? bytes : Buffer.from(shown, 'latin1')
  })
  return Buffer.concat(masked)
}

/**
 * Replaces each visible character in the values of unlisted headers, and in the credentials of request lines, with `x`. Lengths and offsets
 * stay the same. `text` is Latin-1 and may have line ends of any kind.
 */
function maskLines(text: string): string {
  let isMasked = false
  return text
    .split(/(\r\n|\n|\r)/)
    .map((line, n) => {
      // A folded line continues the preceding header, even if the line consists of spaces and tabs (RFC 9112 5.2).
      if (n % 2 === 1 || line === '') return line
      if (isMasked && /^[ \t]/.test(line)) return maskValue(line)
      const found = maskLine(line)
      isMasked = found.isMasked
      return found.shown
    })
    .join('')
}

const PARAMETER = /(?<![\w.-])([\w.-]+)([ \t]*=[ \t]*)("[^"]*"|[^\s;,"]+)/g

function maskParameters(text: string): string {
  return text.replaceAll(PARAMETER, (found, name: string, is: string, value: string) =>
    keptParameter.test(name) ? found : `${name}${is}${maskValue(value)}`,
  )
}

function maskLine(line: string): { readonly shown: string; readonly isMasked: boolean } {
  const header = HEADER.exec(line)
  if (header !== null && !isKeptHeader(header[1] ?? '')) {
    const value = line.indexOf(':') + 1
    return { shown: line.slice(0, value) + maskValue(line.slice(value)), isMasked: true }
  }
  if (header !== null || /^[ \t]/.test(line))
    return { shown: maskTokens(maskParameters(line)), isMasked: false }
  const request = REQUEST.exec(line)
  if (request === null) return { shown: maskTokens(line), isMasked: false }
  const shown = `${request[1] ?? ''}${maskTarget(request[2] ?? '')}${request[3] ?? ''}`
  return { shown, isMasked: false }
}

/**
 * Matches the query of a link in JSON, XML or prose. An escape sequence such as `\u0026` matches as a whole, because half of it would be
 * invalid.
 */
const LINK_QUERY = /\?(?:[^\s"'<>\\?]|\\\/|\\u[\da-f]{4})+/gi
const USER_INFO = /(\/\/|\\\/\\\/)([^\s/?#"'<>\\@]+)@/g
/** Matches the separator `&` of options, also in the escaped forms of JSON and XML. */
const OPTION_END = /(&(?:amp;)?|\\u0026)/i

export function maskTokens(text: string): string {
  const links = text
    .replaceAll(LINK_QUERY, (found) => (found.includes('=') ? `?${maskQuery(found.slice(1))}` : found))
    .replaceAll(USER_INFO, (_all, slashes: string, user: string) => `${slashes}${maskValue(user)}@`)
  return maskTokensAlone(links)
}

function maskTokensAlone(text: string): string {
  if (!TOKEN_HINT.test(text)) return text
  return text.replaceAll(TOKEN, (found) => {
    const start = found.search(TOKEN_START)
    return `${found.slice(0, start)}${maskValue(found.slice(start))}`
  })
}

/** Masks the user and password of a URL, and all query options that do not belong to OData. */
export function maskTarget(target: string): string {
  const at = target.indexOf('?')
  const path = (at === -1 ? target : target.slice(0, at)).replace(
    /^([a-z][a-z0-9+.-]*:\/*)([^/?#]*)@/i,
    (_all, scheme: string, user: string) => `${scheme}${maskValue(user)}@`,
  )
  return at === -1 ? maskTokens(path) : `${maskTokens(path)}?${maskQuery(target.slice(at + 1))}`
}

function maskQuery(query: string): string {
  return query
    .split(OPTION_END)
    .map((option, n) => {
      if (n % 2 === 1) return option
      const at = option.indexOf('=')
      if (at === -1) return keptOption.test(option) ? option : maskValue(option)
      return keptOption.test(option.slice(0, at))
        ? option.slice(0, at + 1) + maskTokensAlone(maskInner(option.slice(at + 1)))
        : `${option.slice(0, at + 1)}${maskValue(option.slice(at + 1))}`
    })
    .join('')
}

/** Matches an option inside the value of another option, such as `$top=1` in `$expand=A($top=1)`, after any separator. */
const INNER_OPTION =
  /((?:^|[;(?]|%3B|%26|%28|%3F) *)((?:(?!%3D|%3B)[^=;&()\s'"])*)(=|%3D)((?:(?!%3B|%26)[^;&)'"\s])*)/gi
const CREDENTIAL =
  /((?:subscription-key|authorization)["']?[ \t]*(?:[=:]|%3[AD]))((?:(?!%3B|%26|%2[27])[^;&'"\s])+)/gi

/** Masks the inner options of an option value that do not belong to OData. */
function maskInner(value: string): string {
  return value
    .replaceAll(INNER_OPTION, (found, before: string, name: string, is: string, inner: string) =>
      keptOption.test(name) || /^[^\w$%]*$/.test(inner) ? found : `${before}${name}${is}${maskValue(inner)}`,
    )
    .replaceAll(CREDENTIAL, (_all, name: string, inner: string) => name + maskValue(inner))
}

const maskValue = (value: string): string => value.replaceAll(/\S+/g, ({ length }) => 'x'.repeat(length))
