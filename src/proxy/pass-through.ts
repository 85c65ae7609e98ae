import { Agent as HttpAgent, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { pipeline } from 'node:stream'

import { createProxyMiddleware, proxyEventsPlugin } from 'http-proxy-middleware'
import micromatch from 'micromatch'

import { AdapterError } from '../errors.ts'
import { connectionOptions, hopByHopHeaders } from '../http/hop-by-hop.ts'
import type { Events } from '../observability/events.ts'
import { sendError } from './error-reply.ts'
import { createLinkRewriter } from './link-rewriter.ts'
import type { Authorisation } from './partner.ts'
import { serviceRoot } from './read-request.ts'

export interface PassThroughOptions {
  readonly baseUrl: URL
  /** Glob patterns of paths, any case; everything else is not served. */
  readonly allow: readonly string[]
  /** Turn the upstream's absolute links in JSON bodies into the adapter's. */
  readonly rewriteLinks: boolean
  readonly connections: number
  /** Longest silence of the upstream. */
  readonly timeoutMs: number
  readonly events: Events
}

export interface PassThrough {
  /** Serves an authorised request; error `ADP_NOT_FOUND` or `ADP_PATH` for what is not on the list. */
  handle(request: IncomingMessage, response: ServerResponse, authorisation: Authorisation): Promise<void>
  close(): void
}

/**
 * Creates the pass-through: requests go to V3 unchanged, streamed both ways, without hop-by-hop headers and with the
 * partner's credentials. Method, status, headers and bytes of the reply are the upstream's; when it dies in the middle of a
 * body the client's connection breaks too, so that a torn reply never looks whole.
 */
export function createPassThrough(options: PassThroughOptions): PassThrough {
  const { baseUrl, events } = options
  const agentOptions = { keepAlive: true, maxSockets: options.connections, timeout: options.timeoutMs }
  const agent = baseUrl.protocol === 'https:' ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions)
  const isAllowed = micromatch.matcher(options.allow.length === 0 ? '!**' : `{${options.allow.join(',')},}`, {
    nocase: true,
    dot: true,
  })
  const credentialsOf = new WeakMap<IncomingMessage, Authorisation['credentials']>()
  const middleware = createProxyMiddleware({
    target: baseUrl.href.replace(/\/$/, ''),
    changeOrigin: true,
    xfwd: true,
    agent,
    proxyTimeout: options.timeoutMs,
    selfHandleResponse: true,
    // The default plugins would answer errors with the host and path of the request, and log them.
    ejectPlugins: true,
    plugins: [proxyEventsPlugin],
    on: {
      proxyReq: (outgoing, request) => {
        for (const name of [...hopByHopHeaders, ...connectionOptions(request.headers.connection)]) {
          if (name !== 'transfer-encoding') outgoing.removeHeader(name) // it frames the body of this hop as well
        }
        const credentials = credentialsOf.get(request)
        if (credentials !== undefined)
          outgoing.setHeader('ocp-apim-subscription-key', credentials.subscriptionKey)
        if (options.rewriteLinks) outgoing.setHeader('accept-encoding', 'identity')
      },
      proxyRes: (upstream, request, response) => {
        relay(upstream, request, response, options)
      },
      error: (_cause, _request, response) => {
        const started = !('headersSent' in response) || response.headersSent
        events.passThroughFailed({ reason: started ? 'brokenReply' : 'unreachable' })
        if (!('writeHead' in response)) response.destroy()
        else
          sendError(
            response,
            new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'The service cannot be reached.'),
            events,
          )
      },
    },
  })
  return {
    handle: async (request, response, authorisation) => {
      const path = checkPath(request.url ?? '/')
      if (!isAllowed(path)) {
        throw new AdapterError(
          'ADP_NOT_FOUND',
          'This path is not served. The configuration lists what is passed through.',
        )
      }
      credentialsOf.set(request, authorisation.credentials)
      await middleware(request, response)
    },
    close: () => agent.destroy(),
  }
}

/** The path to hold against the list; one that could mean another path upstream is refused. */
function checkPath(url: string): string {
  const path = url.split(/[?#]/, 1)[0] ?? ''
  const decoded = decodePath(path)
  if (
    decoded === undefined ||
    /[\\\u0000-\u001f]|\/\/|(^|\/)\.\.?(\/|$)/.test(decoded) ||
    /%(?:2f|5c)/i.test(path)
  ) {
    throw new AdapterError(
      'ADP_PATH',
      'The path has a dot segment, an encoded slash, a backslash or a bad encoding.',
    )
  }
  return decoded
}

function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined // the caller refuses the path
  }
}

/** Sends the upstream's reply on. `pipeline` breaks the client's connection when the upstream's breaks. */
function relay(
  upstream: IncomingMessage,
  request: IncomingMessage,
  response: ServerResponse,
  options: PassThroughOptions,
): void {
  const dropped = new Set([...hopByHopHeaders, ...connectionOptions(upstream.headers.connection)])
  const rewritten = options.rewriteLinks && isPlainJson(upstream)
  if (rewritten) dropped.add('content-length')
  const headers: string[] = []
  for (let at = 0; at + 1 < upstream.rawHeaders.length; at += 2) {
    const name = upstream.rawHeaders[at] ?? ''
    if (!dropped.has(name.toLowerCase())) headers.push(name, upstream.rawHeaders[at + 1] ?? '')
  }
  response.writeHead(upstream.statusCode ?? 502, upstream.statusMessage ?? '', headers)
  const onEnd = (cause: NodeJS.ErrnoException | null): void => {
    if (cause === null || !upstream.destroyed || upstream.complete) return
    options.events.passThroughFailed({ reason: 'brokenReply' })
  }
  if (!rewritten) {
    pipeline(upstream, response, onEnd)
    return
  }
  const from = options.baseUrl.href.replace(/\/$/, '')
  pipeline(upstream, createLinkRewriter(from, serviceRoot(request, '')), response, onEnd)
}

function isPlainJson(upstream: IncomingMessage): boolean {
  const { headers } = upstream
  const encoding = headers['content-encoding'] ?? 'identity'
  return /^application\/json\b/i.test(headers['content-type'] ?? '') && encoding === 'identity'
}
