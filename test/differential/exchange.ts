import { isDeepStrictEqual } from 'node:util'

import { Pool } from 'undici'

import { credentials } from './grammar/samples.ts'
import { type Read, targetOf } from './grammar/read.ts'

/** The properties of a reply that are compared. */
export interface Reply {
  readonly status: number
  /** Header fields that matter to a client, by name. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as text, which keeps the order of members, without the address of the server and the query of the next link. */
  readonly body: string
}

/** The pages of a read, up to the first refusal, the first page without a next link, or `MAX_PAGES`. */
export type Pages = readonly Reply[]

export interface Face {
  readAll(read: Read): Promise<Pages>
  close(): Promise<void>
}

const compared = [
  'content-type',
  'odata-version',
  'allow',
  'preference-applied',
  'location',
  'retry-after',
] as const
/** The maximum number of pages that a read follows. */
export const MAX_PAGES = 60

/** Opens a client of the server at `url`. */
export function openFace(url: string): Face {
  const pool = new Pool(url, { connections: 4 })
  const ask = async (
    method: string,
    path: string,
    read: Read,
  ): Promise<Reply & { next: string | undefined }> => {
    const given: Record<string, string> = { ...credentials, ...read.headers }
    const headers = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
    const reply = await pool.request({ method, path, headers })
    const text = (await reply.body.text()).replaceAll(url, '{origin}')
    const next = nextOf(text)
    return {
      status: reply.statusCode,
      headers: Object.fromEntries(
        compared.flatMap((name) =>
          reply.headers[name] === undefined ? [] : [[name, String(reply.headers[name])]],
        ),
      ),
      body:
        next === undefined
          ? text
          : text.replace(JSON.stringify(next).slice(1, -1), `${next.split('?', 1)[0] ?? ''}?…`),
      next,
    }
  }
  return {
    readAll: async (read) => {
      const pages: Reply[] = []
      // HEAD must have the status and headers of GET, and no body. If so, the replies to GET are compared.
      if (read.method === 'HEAD') {
        const [head, get] = [await ask('HEAD', targetOf(read), read), await ask('GET', targetOf(read), read)]
        const isSame =
          head.status === get.status && isDeepStrictEqual(head.headers, get.headers) && head.body === ''
        if (!isSame) return [{ status: head.status, headers: head.headers, body: 'unlike GET' }]
      }
      const method = read.method === 'HEAD' ? 'GET' : read.method
      let path: string | undefined = targetOf(read)
      while (path !== undefined && pages.length < MAX_PAGES) {
        const { next, ...page } = await ask(method, path, read)
        pages.push(page)
        path = next?.replace('{origin}', '')
      }
      return pages
    },
    close: () => pool.close(),
  }
}

function nextOf(text: string): string | undefined {
  if (!text.includes('@odata.nextLink')) return undefined
  const body = JSON.parse(text) as { '@odata.nextLink'?: string }
  return body['@odata.nextLink']
}
