import * as z from 'zod'

/** One error as the upstream states it. */
export interface UpstreamErrorEntry {
  readonly code: string | undefined
  readonly message: string
  readonly target: string | undefined
}

/** The bodies of errors are short. JSON of more characters is not read: it could take long to parse. */
const MAX_ERROR_LENGTH = 65_536

/** An error reply of the upstream, whatever form its body had. */
export interface UpstreamError {
  readonly status: number
  /** `unreadable` covers HTML, an empty body, broken JSON and a body that is too long for an error. */
  readonly form: 'odata' | 'gateway' | 'array' | 'unreadable'
  /** In the upstream's order; empty for an unreadable body. */
  readonly entries: readonly UpstreamErrorEntry[]
}

const text = z.string().catch('')
const name = z.string().nullish().catch(undefined)
const entry = z.object({ code: name, message: text, target: name })
const odata = z.object({ error: entry.extend({ details: z.array(entry).nullish().catch(undefined) }) })
const gateway = z.object({ statusCode: z.number(), message: z.string() })
const array = z.array(z.object({ ErrorCode: name, Message: text, ResourceIdentifier: name })).min(1)

/**
 * Reads an error body in any of the forms that the service and its gateway use: OData's `{"error":{…}}`, the gateway's
 * `{"statusCode","message"}` (service-facts 12), the V2 array (service.md 7). Never throws.
 */
export function readUpstreamError(status: number, body: string): UpstreamError {
  const json = body.length > MAX_ERROR_LENGTH ? undefined : parseJson(body)
  const asOData = odata.safeParse(json)
  if (asOData.success) {
    const { details, ...outer } = asOData.data.error
    const entries = details === undefined || details === null || details.length === 0 ? [outer] : details
    return { status, form: 'odata', entries: entries.map(toEntry) }
  }
  const asGateway = gateway.safeParse(json)
  if (asGateway.success) {
    return {
      status,
      form: 'gateway',
      entries: [{ code: undefined, message: asGateway.data.message, target: undefined }],
    }
  }
  const asArray = array.safeParse(json)
  if (asArray.success) {
    const entries = asArray.data.map((own) => ({
      code: own.ErrorCode ?? undefined,
      message: own.Message,
      target: own.ResourceIdentifier ?? undefined,
    }))
    return { status, form: 'array', entries }
  }
  return { status, form: 'unreadable', entries: [] }
}

function toEntry(own: z.infer<typeof entry>): UpstreamErrorEntry {
  return { code: own.code ?? undefined, message: own.message, target: own.target ?? undefined }
}

/** A shorter text is parsed in a few milliseconds, whatever it holds. */
const SHORT_LENGTH = 65_536

/**
 * The value of JSON text, undefined where it is none, or where a long one has more than `maxNodes` brackets and commas outside
 * of its strings: each may take up to a microsecond. A byte order mark before it is passed over (RFC 8259 8.1).
 */
export function parseJson(body: string, maxNodes = Number.POSITIVE_INFINITY): unknown {
  if (body.length > SHORT_LENGTH && Number.isFinite(maxNodes) && hasMoreNodes(body, maxNodes))
    return undefined
  try {
    return JSON.parse(body.startsWith('\ufeff') ? body.slice(1) : body) as unknown
  } catch {
    return undefined // an unreadable body is an answer too: the caller classifies it
  }
}

const [QUOTE, COMMA, OPEN_LIST, BACKSLASH, OPEN_OBJECT] = [0x22, 0x2c, 0x5b, 0x5c, 0x7b]

function hasMoreNodes(text: string, max: number): boolean {
  let nodes = 0
  let isInString = false
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isInString = !isInString
    else if (isInString) at += code === BACKSLASH ? 1 : 0
    else if (code === COMMA || code === OPEN_LIST || code === OPEN_OBJECT) nodes += 1
    if (nodes > max) return true
  }
  return false
}
