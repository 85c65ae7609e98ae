import { request } from 'undici'

const MAX_REPLY_BYTES = 1_048_576

/** A reply with its body as JSON; undefined where it is none, or larger than a mebibyte. */
export interface JsonReply {
  readonly status: number
  readonly json: unknown
}

/** Sends one request, for calls that are rare: nothing is shared with others. Rejects where no whole reply comes in time. */
export async function requestJson(
  url: URL,
  options: Pick<NonNullable<Parameters<typeof request>[1]>, 'method' | 'headers' | 'body'>,
  timeoutMs: number,
): Promise<JsonReply> {
  const signal = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)))
  const { statusCode: status, body } = await request(url, { ...options, signal })
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_REPLY_BYTES) return { status, json: undefined }
    chunks.push(chunk)
  }
  return { status, json: parse(Buffer.concat(chunks).toString('utf8')) }
}

/** GETs JSON once, within a time; undefined without a reply of 2xx that is JSON. */
export async function getJson(
  url: URL,
  headers: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<unknown> {
  try {
    const { status, json } = await requestJson(
      url,
      { headers: { accept: 'application/json', ...headers } },
      timeoutMs,
    )
    return status >= 200 && status < 300 ? json : undefined
  } catch {
    // The caller has other ways to find out, or gives up.
    return undefined
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined // the caller says what it means
  }
}
