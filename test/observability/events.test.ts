import { describe, expect, it } from 'vitest'

import { createEvents, framesOf } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'

/** Returns the log entries of some events, without time and name. */
function written(level: string, act: (events: ReturnType<typeof createEvents>) => void): unknown[] {
  const lines: string[] = []
  act(createEvents(createLogger(level, { write: (line) => lines.push(line) })))
  return lines.map((line) => {
    const entry = JSON.parse(line) as Record<string, unknown>
    expect([entry['name'], typeof entry['time']]).toEqual(['markbridge', 'string'])
    return { ...entry, name: undefined, time: undefined }
  })
}

describe('createEvents', () => {
  const tally = { accepted: 1, refused: 2, notApplied: 3, unknown: 4 }
  const batch = {
    ...tally,
    partner: 'acme',
    records: 10,
    changesets: 1,
    outcomesShown: true,
    unmappedFields: 0,
    convertedFields: 0,
    replayed: false,
    durationMs: 5,
    queuedMs: 0,
  }

  const read = {
    partner: 'acme',
    kind: 'collection',
    status: 200,
    rows: 40,
    pages: 2,
    durationMs: 5,
    queuedMs: 1,
  } as const
  const passed = { partner: 'acme', method: 'PATCH', status: 204, durationMs: 5, queuedMs: 1 } as const

  it('writes one log line for each event, with exactly the fields of the event', () => {
    expect(
      written('trace', (events) => {
        events.batchAnswered(batch)
        events.readAnswered(read)
        events.passedThrough(passed)
        events.requestRefused({ code: 'ADP_HOST', status: 400, partner: undefined })
        events.credentialsDenied({ status: 401, partner: 'acme' })
        events.passThroughFailed({ reason: 'brokenReply' })
        events.internalError({ errorName: 'TypeError', stack: ['at x'] })
        events.drainExpired({ requests: 2 })
        events.started({ url: 'http://127.0.0.1:1' })
        events.stopped()
      }),
    ).toEqual([
      { level: 30, msg: 'batch answered', ...batch },
      { level: 30, msg: 'read answered', ...read },
      { level: 30, msg: 'passed through', ...passed },
      { level: 40, msg: 'request refused', code: 'ADP_HOST', status: 400 },
      { level: 40, msg: 'credentials denied by the upstream', status: 401, partner: 'acme' },
      { level: 40, msg: 'pass-through failed', reason: 'brokenReply' },
      { level: 50, msg: 'internal error', errorName: 'TypeError', stack: ['at x'] },
      { level: 40, msg: 'connections closed before their replies were read', requests: 2 },
      { level: 30, msg: 'started', url: 'http://127.0.0.1:1' },
      { level: 30, msg: 'stopped' },
    ])
  })

  it('omits events below the configured log level', () => {
    const act = (events: ReturnType<typeof createEvents>): void => {
      events.stopped()
      events.credentialsDenied({ status: 401, partner: 'acme' })
    }
    expect(written('warn', act).length).toBe(1)
    expect(written('silent', act)).toEqual([])
  })
})

describe('framesOf', () => {
  it('returns the frames without the message, even if the message has lines that look like frames', () => {
    const error = new TypeError('hush\n    at hush (hush.js:1:1)\n  hush')
    const frames = framesOf(error)
    expect(frames.length).toBeGreaterThan(0)
    expect(frames.length).toBeLessThanOrEqual(12)
    expect(frames.every((frame) => frame.startsWith('at '))).toBe(true)
    expect(frames.join('\n')).not.toContain('hush')
    expect(framesOf(Object.assign(new Error('x'), { stack: undefined }))).toEqual([])
  })
})
