import { request } from 'undici'

const MAX_REPLY_BYTES = 1_048_576

/** GETs JSON once, within a time; undefined without a reply of 2xx that is JSON. For calls that are rare. */
export async function getJson(
  url: URL,
  headers: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<unknown> {
  try {
    const reply = await request(url, {
      headers: { accept: 'application/json', ...headers },
      signal: AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs))),
    })
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of reply.body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > MAX_REPLY_BYTES) return undefined
      chunks.push(chunk)
    }
    const isRead = reply.statusCode >= 200 && reply.statusCode < 300
    return isRead ? (JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown) : undefined
  } catch {
    // The caller has other ways to find out, or gives up.
    return undefined
  }
}
