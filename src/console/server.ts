import { finished } from 'node:stream/promises'

import busboy from 'busboy'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'

import { certificateOf, type ConsoleConfig } from '../config/index.ts'
import { AdapterError, errorRules, toErrorBody } from '../errors.ts'
import { type AddressList, checkHost, createAddressList } from '../http/address.ts'
import { createOrderedServer } from '../http/reply-order.ts'
import type { ListedOperator } from '../rollout/operators.ts'
import { clientOf, COOKIE, createHostCheck, createIdentify, createLoginLimit } from './access/identify.ts'
import { createSessions, type SignedIn } from './access/sessions.ts'
import { forbidden, MAX_FILE_BYTES, type Visit } from './access/visit.ts'
import { serveAssets } from './assets/assets.ts'
import { pages } from './pages/index.ts'
import { renderError, renderLogin, renderPage } from './pages/layout.tsx'
import type { Done, Shown } from './pages/page.ts'
import type { ConsolePorts } from './ports.ts'

export interface ConsoleOptions {
  readonly settings: Omit<ConsoleConfig, 'port' | 'runs'>
  /** Returns the operators in the current configuration. Without operators, the user of the operating system signs in with a link. */
  readonly operators: () => readonly ListedOperator[]
  readonly systemUser: string
  readonly ports: ConsolePorts
  readonly nowMs: () => number
  /** The maximum number of open connections. Default: 256. */
  readonly maxConnections?: number | undefined
  readonly onError: (error: unknown) => void
}

const limits = { maxHeaderSize: 32_768, headersTimeout: 10_000, requestTimeout: 60_000 }
const MAX_FORM = '256kb'
/** The maximum size in bytes of the fields that are sent beside a file. */
const FIELD_BYTES = 16_384
/** The maximum number of fields of a form. An action on many records has a field for each record. */
const MAX_FIELDS = 2_000
/** The maximum number of open connections: six for each browser of a large team. */
const MAX_CONNECTIONS = 256

/** Creates the console. Every page and every action identifies the sender of the request, and checks what the sender may see. */
export function createConsole(options: ConsoleOptions) {
  const { operators, systemUser, nowMs } = options
  const sessions = createSessions(operators, systemUser, nowMs)
  const server = createOrderedServer({ ...limits, requireHostHeader: false }, createApp(options, sessions), {
    tls: certificateOf(options.settings.tls),
    // Limits the connections, because the process also serves clients and must not run out of file descriptors.
    maxConnections: options.maxConnections ?? MAX_CONNECTIONS,
  })
  return {
    server,
    /** Returns the path of a link that signs in the user of the operating system once, or `undefined` if the configuration lists operators. */
    createLink: (): string | undefined => {
      const token = sessions.createLink()
      return token && `/enter?link=${token}`
    },
  }
}

function createApp(options: ConsoleOptions, sessions: ReturnType<typeof createSessions>): Express {
  const { settings, ports } = options
  const app = express()
  app.set('query parser', false)
  app.set('case sensitive routing', true)
  app.set('strict routing', true)
  app.disable('etag').disable('x-powered-by')
  const proxies = createAddressList(settings.trustedProxies)
  app.set('trust proxy', (address: string) => proxies.has(address))
  addHealth(app, ports)
  app.use(createGate(settings))
  serveAssets(app)
  const access = createAccess(options, sessions, proxies)
  const placeOf = (signedIn?: SignedIn) => ({ signedIn, hasSandbox: ports.sandbox !== undefined })
  access.addLogin(app)
  app.use(access.expectSignedIn)
  app.use(express.urlencoded({ extended: false, limit: MAX_FORM, parameterLimit: MAX_FIELDS }))
  app.use(express.json({ limit: MAX_FORM }))
  app.use(express.raw({ type: 'multipart/form-data', limit: MAX_FILE_BYTES + FIELD_BYTES }))
  addPages(app, access, ports)
  app.use(() => {
    throw new AdapterError(
      'ADP_NOT_FOUND',
      'There is no such page. Nothing was changed. Choose a page from the menu, or check the address.',
    )
  })
  app.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    const known = toKnownError(error)
    if (response.headersSent) {
      next(error)
      return
    }
    if (known.code === 'ADP_INTERNAL') options.onError(error)
    if (response.statusCode === 200) response.status(statusOf(known))
    if (wantsJson(request)) response.json(toErrorBody(known))
    else response.send(renderError(response.statusCode, known.message, placeOf(access.whoIs(request))))
  })
  return app
}

/** The time for which probes share one result, because anyone may send probes and each result takes a query. */
const READY_MS = 1_000

/** Adds the routes for probes. Probes need neither the host name of the console nor a token. */
function addHealth(app: Express, { data }: ConsolePorts): void {
  let [untilMs, status] = [-Infinity, Promise.resolve(503)]
  app.get('/healthz', (_request, response) => void response.json({ status: 'ok' }))
  app.get('/readyz', async (_request, response) => {
    if (performance.now() >= untilMs) {
      untilMs = performance.now() + READY_MS
      // A lookup by number with an empty scope is the cheapest query.
      status = data.batch(1, []).then(
        () => 200,
        () => 503,
      )
    }
    const code = await status
    response.status(code).json({ status: code === 200 ? 'ok' : 'journal unavailable' })
  })
}

/**
 * The headers of every response. `Referrer-Policy` is not `no-referrer`, because browsers would then send forms with the origin `null`,
 * which `expectSameSite` refuses.
 */
const HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none';style-src 'self';script-src 'self';img-src 'self';connect-src 'self';form-action 'self';frame-ancestors 'none';base-uri 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

const OTHER_HOST =
  'The console does not answer under this host name. Nothing was done. Add the name to console.hosts.'

/** Creates the check that refuses requests under another host name, and changes that another site sends. */
function createGate(settings: ConsoleOptions['settings']) {
  const isOwnHost = createHostCheck(settings)
  return (request: Request, response: Response, next: NextFunction): void => {
    response.set(HEADERS)
    const host = checkHost(request)
    if (!isOwnHost(request)) throw new AdapterError('ADP_HOST', OTHER_HOST)
    if (request.method === 'POST') expectSameSite(request, host)
    next()
  }
}

/**
 * Checks the headers `Origin` and `Sec-Fetch-Site`, by which browsers report the sender of a form. Every browser sends at least one of
 * these headers with a POST, and no page can change them. The check also protects the login. Programs, which send neither header, pass.
 */
function expectSameSite({ headers }: Request, host: string): void {
  const site = headers['sec-fetch-site']
  const { origin } = headers
  const isOwnOrigin =
    origin === undefined || (URL.canParse(origin) && new URL(origin).host === host.toLowerCase())
  if (isOwnOrigin && (site === undefined || site === 'same-origin' || site === 'none')) return
  throw forbidden(
    'Another site sent this form. Nothing was done. Open the page in the console and repeat the action.',
  )
}

function createAccess(
  { settings, nowMs }: ConsoleOptions,
  sessions: ReturnType<typeof createSessions>,
  proxies: AddressList,
) {
  const identify = createIdentify(sessions, settings, proxies)
  const limit = createLoginLimit(nowMs)
  const known = new WeakMap<Request, SignedIn>()
  const expectAttempt = (request: Request, response: Response): void => {
    const waitS = limit.waitOf(clientOf(request))
    if (waitS === 0) return
    response.status(429).set('Retry-After', String(waitS))
    throw new AdapterError(
      'ADP_OVERLOADED',
      `There were too many failed attempts to sign in. This attempt was not checked. Try again in ${waitS} s.`,
    )
  }
  /** Sets the cookie and redirects, or shows the login page with an error if `cookie` is `undefined`. */
  const enter = (request: Request, response: Response, cookie: string | undefined): void => {
    const to = ownPath(queryOf(request).get('to'))
    if (cookie === undefined) {
      limit.failed(clientOf(request))
      response.status(401).send(renderLogin(to, NO_OPERATOR))
    } else response.cookie(COOKIE, cookie, { ...cookieRules, secure: request.secure }).redirect(303, to)
  }
  return {
    whoIs: (request: Request): SignedIn | undefined => known.get(request),
    addLogin: (app: Express): void => {
      app.get('/login', (request, response) => {
        response.send(renderLogin(ownPath(queryOf(request).get('to'))))
      })
      app.post('/login', express.urlencoded({ extended: false, limit: '4kb' }), (request, response) => {
        expectAttempt(request, response)
        enter(request, response, sessions.enter(formOf(request.body).get('token')?.trim() ?? ''))
      })
      app.get('/enter', (request, response) => {
        expectAttempt(request, response)
        enter(request, response, sessions.enterByLink(queryOf(request).get('link') ?? ''))
      })
    },
    expectSignedIn: (request: Request, response: Response, next: NextFunction): void => {
      if (request.headers.authorization !== undefined) expectAttempt(request, response)
      const { signedIn, isWrongToken } = identify(request)
      if (isWrongToken) limit.failed(clientOf(request))
      if (signedIn !== undefined) {
        known.set(request, signedIn)
        next()
      } else if (wantsJson(request) || request.method === 'POST') {
        throw new AdapterError('ADP_TOKEN', NO_TOKEN)
      } else response.redirect(303, `/login?to=${encodeURIComponent(ownPath(request.originalUrl))}`)
    },
    signOut: (request: Request, response: Response): void => {
      sessions.end(known.get(request)?.id ?? '')
      response.clearCookie(COOKIE, cookieRules).redirect(303, '/login')
    },
  }
}

const cookieRules = { httpOnly: true, sameSite: 'strict', path: '/' } as const
const NO_OPERATOR =
  'No operator has this token, or the link was used already or has expired. You are not signed in. Check the token, or restart the console to get another link.'
const NO_TOKEN =
  'The request has no valid login. Nothing was done. Sign in, or send the token of an operator: Authorization: Bearer <token>.'

/** The maximum number of results of actions that no page has shown yet. Beyond this number, all these results are dropped. */
const MAX_RESULTS = 500

function addPages(app: Express, access: ReturnType<typeof createAccess>, ports: ConsolePorts): void {
  /** The result of the last action of each person, which the next page shows. */
  const results = new Map<string, Done>()
  const visitOf = async (request: Request): Promise<Visit> => {
    const signedIn = access.whoIs(request)
    if (signedIn === undefined) throw new AdapterError('ADP_TOKEN', NO_TOKEN)
    const { actor } = signedIn
    const params = request.params as Readonly<Record<string, string>>
    const own = await readForm(request)
    return { signedIn, actor, scope: actor.partners ?? 'all', params, query: queryOf(request), ...own }
  }
  const send = (request: Request, response: Response, { signedIn }: Visit, shown: Shown): void => {
    if (wantsJson(request)) response.json(shown.json)
    else if (shown.document !== undefined) {
      const { html, policy } = shown.document
      response.set('Content-Security-Policy', `${policy}; frame-ancestors 'none'`).send(html)
    } else {
      const result = results.get(signedIn.id)
      results.delete(signedIn.id)
      const hasSandbox = ports.sandbox !== undefined
      response.send(renderPage(shown, { signedIn, path: request.path, hasSandbox, result }))
    }
  }
  app.post('/logout', (request, response) => access.signOut(request, response))
  for (const { path, show, act } of pages) {
    app.get(path, async (request, response) => {
      const visit = await visitOf(request)
      send(request, response, visit, await show(visit, ports))
    })
    if (act === undefined) continue
    app.post(path, async (request, response) => {
      const visit = await visitOf(request)
      const done = await act(visit, ports)
      if ('body' in done) send(request, response, visit, done)
      else if (wantsJson(request)) response.status(done.isDone ? 200 : 409).json(done.json)
      else {
        if (results.size >= MAX_RESULTS) results.clear()
        if (done.text !== '') results.set(visit.signedIn.id, done)
        response.redirect(303, done.to)
      }
    })
  }
}

/** The maximum number of parts of an upload, since each part takes time of the process that serves clients. */
const MAX_PARTS = 20

/** Returns the fields of a form and its file. Throws `ADP_BODY` if the upload cannot be read. */
async function readForm(request: Request): Promise<Pick<Visit, 'form' | 'file'>> {
  const body: unknown = request.body
  if (!Buffer.isBuffer(body)) return { form: formOf(body), file: undefined }
  const form = new URLSearchParams()
  const pieces: Buffer[] = []
  try {
    const parser = busboy({
      headers: request.headers,
      limits: { parts: MAX_PARTS, files: 1, fieldSize: MAX_FILE_BYTES },
    })
    parser.on('field', (name, value) => form.append(name, value))
    // If no file was chosen, a browser sends an empty file, which adds no piece. The error of a file is ignored, because the parser reports
    // it too.
    parser.on('file', (_name, file) => {
      file.on('data', (piece: Buffer) => pieces.push(piece)).on('error', () => undefined)
    })
    parser.on('partsLimit', () => parser.destroy(new AdapterError('ADP_BODY', UNREADABLE)))
    await finished(parser.end(body))
  } catch (cause) {
    throw new AdapterError('ADP_BODY', UNREADABLE, { cause })
  }
  return { form, file: pieces.length === 0 ? undefined : Buffer.concat(pieces) }
}

const UNREADABLE =
  'The form is too large or cannot be read. Nothing was done. Repeat the action, or check a large batch with markbridge check <file>.'

function formOf(body: unknown): URLSearchParams {
  const fields = typeof body === 'object' && body !== null ? body : {}
  const pairs = Object.entries(fields).flatMap(([name, value]: [string, unknown]) =>
    [value].flat().map((one) => [name, typeof one === 'string' ? one : JSON.stringify(one)]),
  )
  return new URLSearchParams(pairs)
}

/** Reads the query. The query parser of Express is turned off, since it creates objects from names with brackets. */
const queryOf = ({ originalUrl }: Request): URLSearchParams =>
  new URLSearchParams(originalUrl.includes('?') ? originalUrl.slice(originalUrl.indexOf('?')) : '')

const wantsJson = (request: Request): boolean => request.accepts(['html', 'json']) === 'json'

/** Returns a path of this console, or `/` for any other address. */
function ownPath(wanted: string | null): string {
  const base = 'http://console'
  if (wanted === null || !URL.canParse(wanted, base)) return '/'
  const { origin, pathname, search } = new URL(wanted, base)
  return origin === base && !pathname.startsWith('//') ? `${pathname}${search}` : '/'
}

/** Converts an error of a request. The messages of Express and its parsers, whose errors have a status, are hidden. */
function toKnownError(error: unknown): AdapterError {
  if (error instanceof AdapterError && error.code !== 'ADP_INTERNAL') return error
  const status = error instanceof Error && 'status' in error ? error.status : 500
  if (status === 413) return new AdapterError('ADP_TOO_LARGE', UNREADABLE)
  if (Number(status) < 500) return new AdapterError('ADP_BODY', UNREADABLE)
  return new AdapterError('ADP_INTERNAL', FAULT, { cause: error })
}

const FAULT =
  'The request failed because of a fault in the console. An action may have been taken. Find the cause in the log.'

/** Returns the status of an error: 400 for the class `configuration`, because the person filled in a form wrongly. */
const statusOf = ({ code, status }: AdapterError): number =>
  errorRules[code].class === 'configuration' ? 400 : status
