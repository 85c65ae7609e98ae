import { request } from 'undici'

import { readEnvironment } from '../config/environment.ts'
import { AdapterError } from '../errors.ts'
import { type DecodedReply, openReplyDecoding } from '../v2/index.ts'
import { formatGivenText } from './text-table.ts'

/** A batch as it is posted. */
export interface PostedBatch {
  readonly body: Buffer
  readonly contentType: string | undefined
}

/** The end of a reply: complete, cut off, or stopped by `signal`. */
export type ReplyEnd = 'whole' | 'cut off' | 'stopped'

/** Codes of errors without a connection: nothing was sent. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Codes of a certificate that is not trusted, and of a handshake that failed. */
const CERTIFICATE = /CERT|SELF_SIGNED|^ERR_(?:TLS|SSL)/

/**
 * Posts a batch as a V2 client does and calls `onPart` for each part of the reply when it arrives.
 * Errors: `ADP_UPSTREAM_UNAVAILABLE` where nothing answers, `ADP_UPSTREAM_REFUSED` for any other reply than that of a batch.
 */
export async function postBatch(
  to: URL,
  { body, contentType }: PostedBatch,
  signal: AbortSignal,
  onPart: (part: DecodedReply) => void,
): Promise<ReplyEnd> {
  const { subscriptionKey, token } = readEnvironment()
  const headers = {
    ...(contentType === undefined ? {} : { 'content-type': contentType }),
    'ocp-apim-subscription-key': subscriptionKey ?? 'sandbox',
    authorization: `bearer ${token ?? 'sandbox'}`,
  }
  try {
    const reply = await request(to, {
      method: 'POST',
      headers,
      body,
      headersTimeout: 0,
      bodyTimeout: 0,
      signal,
    })
    if (reply.statusCode !== 200) throw refusal(reply.statusCode, await reply.body.text())
    const decoding = openDecoding(String(reply.headers['content-type']))
    for await (const chunk of reply.body as AsyncIterable<Buffer>) decoding.push(chunk).forEach(onPart)
    decoding.end().forEach(onPart)
    return 'whole'
  } catch (cause) {
    return endOf(cause, to, signal)
  }
}

function openDecoding(contentType: string): ReturnType<typeof openReplyDecoding> {
  try {
    return openReplyDecoding(contentType)
  } catch (cause) {
    const message =
      'The reply is 200, but not a batch reply (multipart/mixed). Is --to the address of an adapter?'
    throw new AdapterError('ADP_UPSTREAM_REFUSED', message, { cause })
  }
}

function endOf(cause: unknown, to: URL, signal: AbortSignal): ReplyEnd {
  if (signal.aborted) return 'stopped'
  if (cause instanceof AdapterError) {
    if (cause.code === 'ADP_TRUNCATED') return 'cut off'
    throw cause
  }
  // Connection errors have codes; any other error is a bug.
  if (!(cause instanceof Error && 'code' in cause)) throw cause
  const code = String(cause.code)
  if (code.startsWith('UND_ERR_INVALID')) throw cause
  if (NOT_SENT.has(code) || CERTIFICATE.test(code)) {
    const message = CERTIFICATE.test(code)
      ? `The certificate of ${to.origin} is not trusted (${code}). Set NODE_EXTRA_CA_CERTS to its authority, or name another address.`
      : `Nothing answers at ${to.origin}. Is the adapter running?`
    throw new AdapterError('ADP_UPSTREAM_UNAVAILABLE', message, { cause })
  }
  return 'cut off'
}

/** The error of a batch that was refused as a whole, with the text of the reply. */
function refusal(status: number, text: string): AdapterError {
  const { error, message } = parseRefusal(text)
  const words = error === undefined ? (message ?? text) : `${error.code ?? ''} ${error.message ?? ''}`
  const place = error?.details?.[0]?.target
  const where = place === undefined ? '' : ` (${place})`
  return new AdapterError(
    'ADP_UPSTREAM_REFUSED',
    `The whole batch was answered ${status}: ${formatGivenText(words.trim() + where)}`,
  )
}

interface Refusal {
  readonly error?: {
    readonly code?: string
    readonly message?: string
    readonly details?: readonly { readonly target?: string }[]
  }
  readonly message?: string
}

function parseRefusal(text: string): Refusal {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null ? json : {}
  } catch {
    return {}
  }
}
