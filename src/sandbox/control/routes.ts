import express, { Router } from 'express'
import type { NextFunction, Request, Response } from 'express'
import { AdapterError } from '../../errors.ts'
import { isLoopback, isLoopbackAddress } from '../../http/loopback.ts'
import type { Clock } from '../clock.ts'
import { odataError } from '../edge/reply.ts'
import { sendReply } from '../edge/send.ts'
import { readLegacyForm } from '../legacy/legacy-form.ts'
import type { School } from '../school.ts'
import { FieldReader, isMembers } from '../attendance/field-reader.ts'
import { formatInstant } from '../dates.ts'
import { readDifferencePlan } from '../differences/difference-plan.ts'
import { listDifferences } from '../differences/list-differences.ts'
import { listEffects } from './effects.ts'
import { readFaults } from './fault.ts'
import type { FaultPlan } from './fault-plan.ts'
import { collectSamples } from './samples.ts'
import { readValueRules } from './stored-values.ts'

/** Why control refuses a request: its code and message. Undefined: it is a local program, or a page of the sandbox itself. */
function refusalOf({ headers, socket }: Request): readonly [code: string, message: string] | undefined {
  const { host = '', origin } = headers
  if (!isLoopbackAddress(socket.remoteAddress ?? ''))
    return ['LoopbackOnly', 'Control answers this machine only.']
  // A page whose name was resolved to this machine (DNS rebinding) asks for its own name.
  if (!isLoopback(host.replace(/:\d*$/, '')))
    return ['ForeignHost', 'Control answers requests to a loopback name or address only.']
  // Browsers say where a request comes from; programs say nothing (Fetch Metadata 2.4, Fetch 3.2).
  const site = headers['sec-fetch-site'] ?? 'none'
  const isOwnSite = site === 'none' || site === 'same-origin'
  const isOwnOrigin = origin === undefined || origin === `http://${host}`
  return isOwnSite && isOwnOrigin ? undefined : ['ForeignPage', 'Control answers no page of another site.']
}

/** The parts of the sandbox that the control routes operate on. */
export interface ControlParts {
  readonly school: School
  readonly clock: Clock
  readonly faults: FaultPlan
  /** Undoes every write, removes all faults and differences, keeps values as they are posted, and gives V2 its standard form. */
  readonly reset: () => void
}

/** Routes under `/_sandbox` that inspect and control the sandbox, without credentials, for local callers only. */
export function createControlRoutes({ school, clock, faults, reset }: ControlParts): Router {
  const router = Router()
  router.use((request, response, next) => {
    const refusal = refusalOf(request)
    if (refusal === undefined) next()
    else refuse(response, ...refusal)
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
  router.get('/faults', (_request, response) => void response.json(faults.list()))
  router.put('/faults', (request, response) => {
    faults.set(readFaults(request.body), school.marks.lastSeq())
    response.json(faults.list())
  })
  router.delete('/faults', (_request, response) => {
    faults.clear()
    response.status(204).end()
  })
  const { storedValues, legacyForm } = school
  routeRules(router, '/values', readValueRules, storedValues.rules, storedValues.set)
  routeRules(router, '/legacy-form', readLegacyForm, legacyForm.current, legacyForm.set)
  router.get('/differences', (_request, response) => void response.json(listDifferences(school)))
  router.put('/differences', (request, response) => {
    school.differences.set(readDifferencePlan(request.body))
    response.json(listDifferences(school))
  })
  router.delete('/differences', (_request, response) => {
    school.differences.clear()
    response.status(204).end()
  })
  router.put('/clock', (request, response) => {
    clock.fix(readInstant(request.body))
    response.json({ now: formatInstant(clock.now()) })
  })
  router.delete('/clock', (_request, response) => {
    clock.fix(undefined)
    response.json({ now: formatInstant(clock.now()) })
  })
  router.use(answerError)
  return router
}

/** GET shows the rules in force, PUT replaces them, DELETE restores the defaults. */
function routeRules<Rules>(
  router: Router,
  path: string,
  read: (body: unknown) => Rules,
  current: () => Rules,
  set: (rules: Rules | undefined) => void,
): void {
  router.get(path, (_request, response) => void response.json(current()))
  router.put(path, (request, response) => {
    set(read(request.body))
    response.json(current())
  })
  router.delete(path, (_request, response) => {
    set(undefined)
    response.status(204).end()
  })
}

/** The body of `PUT /_sandbox/clock`: `{"now":"2026-03-02T09:00:00Z"}`. */
function readInstant(body: unknown): number {
  const reader = new FieldReader()
  const instant = isMembers(body) ? reader.instant(body, '', 'now') : undefined
  if (instant === undefined) throw new AdapterError('ADP_USAGE', 'The clock needs {"now": <ISO date-time>}.')
  return instant
}

function refuse(response: Response, code: string, message: string): void {
  response.status(403).json({ error: { code, message } })
}

// Express knows an error handler by its four parameters.
function answerError(error: unknown, _request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) {
    next(error)
    return
  }
  const known = error instanceof AdapterError
  const message = known ? error.message : 'The body is not valid JSON.'
  sendReply(
    response,
    odataError(400, known ? error.code : 'InvalidBody', message, known ? error.details : []),
  )
}
