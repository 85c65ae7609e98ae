import { Router } from 'express'
import type { Request } from 'express'
import type { School } from '../school.ts'
import { listEffects } from './effects.ts'
import { collectSamples } from './samples.ts'

/** A peer on this machine. Control answers nobody else. */
function isLoopback(request: Request): boolean {
  const address = request.socket.remoteAddress ?? ''
  return address === '::1' || address.replace(/^::ffff:/, '').startsWith('127.')
}

/** Routes under `/_sandbox` that look into the sandbox and steer it. They need no credentials, but a local caller. */
export function createControlRoutes(school: School, reset: () => void): Router {
  const router = Router()
  router.use((request, response, next) => {
    if (isLoopback(request)) next()
    else
      response
        .status(403)
        .json({ error: { code: 'LoopbackOnly', message: 'Control answers this machine only.' } })
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
  return router
}
