import * as z from 'zod'

/** One error as the upstream states it. */
export interface UpstreamErrorEntry {
  readonly code: string | undefined
  readonly message: string
  readonly target: string | undefined
}

/** An error reply of the upstream, whatever form its body had. */
export interface UpstreamError {
  readonly status: number
  /** `unreadable` covers HTML, an empty body and broken JSON. */
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
  const json = parseJson(body)
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

/** The value of JSON text, undefined where it is none. A byte order mark before it is passed over (RFC 8259 8.1). */
export function parseJson(body: string): unknown {
  try {
    return JSON.parse(body.startsWith('\ufeff') ? body.slice(1) : body) as unknown
  } catch {
    return undefined // an unreadable body is an answer too: the caller classifies it
  }
}
