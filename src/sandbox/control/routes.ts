import express, { type NextFunction, type Request, type Response, Router } from 'express'

import { AdapterError } from '../../errors.ts'
import { isLoopback, isLoopbackAddress } from '../../http/address.ts'
import { dayMs, dayNumber, formatInstant, isOnRoll } from '../dates.ts'
import { odataError } from '../http/reply.ts'
import { sendReply } from '../http/server.ts'
import type { School } from '../school.ts'
import { fixedMonday } from '../seed/calendar.ts'
import type { Effect } from '../store/marks.ts'
import type { Setting } from './setting.ts'

interface ControlParts {
  readonly school: School
  /** The settings by the path of their route. */
  readonly settings: Readonly<Record<string, Setting>>
  /** Undoes every write and restores the defaults of all settings except the clock. */
  readonly reset: () => void
}

/** Creates the routes under `/_sandbox`. The routes need no credentials and accept local callers only. */
export function createControlRoutes({ school, settings, reset }: ControlParts): Router {
  const router = Router()
  router.use((request, response, next) => {
    const refusal = refusalOf(request)
    if (refusal === undefined) next()
    else response.status(403).json({ error: refusal })
  })
  router.get('/samples', (_request, response) => void response.json(collectSamples(school)))
  router.get('/effects', (request, response) => {
    const since = Number(request.query['since'] ?? 0)
    response.json(listEffects(school, Number.isSafeInteger(since) ? since : 0))
  })
  router.post('/reset', (_request, response) => {
    reset()
    response.status(204).end()
  })
  router.use(express.json({ strict: false }))
  for (const [path, setting] of Object.entries(settings)) {
    router.get(path, (_request, response) => void response.json(setting.current()))
    router.put(path, (request, response) => {
      setting.put(request.body)
      response.json(setting.current())
    })
    router.delete(path, (_request, response) => {
      setting.clear()
      response.status(204).end()
    })
  }
  router.use(answerError)
  return router
}

/** Returns the reason for refusing a control request, or `undefined` if the request comes from a local program or a page of the sandbox. */
function refusalOf({ headers, socket }: Request): { code: string; message: string } | undefined {
  const { host = '', origin } = headers
  if (!isLoopbackAddress(socket.remoteAddress ?? ''))
    return {
      code: 'LoopbackOnly',
      message:
        'The control request comes from another machine. Nothing was changed. Send the request on this machine.',
    }
  // After DNS rebinding, a page of another site can reach this machine, but its requests still contain the name of the other host.
  if (!isLoopback(host.replace(/:\d*$/, '')))
    return {
      code: 'ForeignHost',
      message:
        'The control request does not use a loopback name or address. Nothing was changed. Send the request to 127.0.0.1.',
    }
  // Browsers name the site of the page in these headers (Fetch Metadata 2.4, Fetch 3.2). Other programs do not send these headers.
  const site = headers['sec-fetch-site'] ?? 'none'
  const isOwnSite = site === 'none' || site === 'same-origin'
  const isOwnOrigin = origin === undefined || origin === `http://${host}`
  if (isOwnSite && isOwnOrigin) return undefined
  return {
    code: 'ForeignPage',
    message:
      'The control request comes from another site. Nothing was changed. Use a page of the sandbox or a local program.',
  }
}

// Express recognises an error handler by its four parameters.
function answerError(error: unknown, _request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) {
    next(error)
    return
  }
  const known = error instanceof AdapterError
  const message = known
    ? error.message
    : 'The body is not valid JSON. Nothing was changed. Send one JSON object.'
  sendReply(
    response,
    odataError(400, known ? error.code : 'InvalidBody', message, known ? error.details : []),
  )
}

/** An accepted write, with the ids of the service in place of internal numbers. */
export interface EffectEntry extends Omit<Effect, 'learner' | 'session' | 'code'> {
  readonly learner: string
  readonly event: string
  readonly code: string
}

function listEffects({ marks, ids }: School, since: number): EffectEntry[] {
  return marks.effects(since).map(({ seq, face, learner, session, code, ...rest }) => ({
    ...{ seq, face },
    learner: ids.guid('learner', learner),
    event: ids.guid('session', session),
    code: ids.guid('code', code),
    ...rest,
  }))
}

/**
 * Returns ids with which a user can try out the service: learners who are on roll today, school sessions of the fixed weeks, and codes.
 * Learners who were also on roll in the fixed weeks come first. The fixed weeks last from `from` (inclusive) to `to` (exclusive). At scale
 * `class`, a seed gives the same ids every day.
 */
function collectSamples(school: School) {
  const first = dayNumber(fixedMonday)
  const today = school.today()
  const current = school.roster.entries.filter((entry) => isOnRoll(entry, today))
  const [settled = [], others = []] = [true, false].map((wanted) =>
    current.filter((entry) => isOnRoll(entry, first) === wanted),
  )
  return {
    learners: [...settled, ...others].map(({ externalId }) => externalId),
    events: school.calendar.schoolSessions(first, 14).map(({ externalId }) => externalId),
    codes: school.codes.codes.map(({ externalId, code }) => ({ id: externalId, code })),
    from: formatInstant(first * dayMs),
    to: formatInstant((first + 14) * dayMs),
  }
}
