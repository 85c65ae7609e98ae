import { expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import type { UpstreamError } from '../../src/v3/index.ts'
import { deniedOutcome, isDenial, toDenialError } from '../../src/writes/denial.ts'
import type { Plan } from '../../src/writes/plan.ts'
import type { Reply } from '../../src/writes/reply.ts'
import { type Run, runForClient } from '../../src/writes/run.ts'
import type { WriteSession } from '../../src/writes/write-session.ts'
import { guid } from '../support/batch-request.ts'
import { plannedRecord, refusedRecord } from './planned-record.ts'
import { createWriteContext } from './write-context.ts'

const denied = (status: number, message?: string): UpstreamError => ({
  status,
  form: 'gateway',
  entries: message === undefined ? [] : [{ code: undefined, message, target: undefined }],
})

it.each([
  [401, 'Token expired.', 'ADP_TOKEN', 'Token expired.'],
  [403, undefined, 'ADP_FORBIDDEN', 'The service denied the credentials (403).'],
] as const)('answers %i in the words of the service, or in its own', (status, message, code, text) => {
  expect(isDenial(denied(status))).toBe(true)
  expect(toDenialError(denied(status, message))).toMatchObject({ code, message: text })
})

it('leaves a record unknown that may have been applied before its credentials were denied', () => {
  expect([deniedOutcome('readBack').kind, deniedOutcome('post').kind]).toEqual(['unknown', 'notApplied'])
})

/** Runs two records whose credentials are denied, for a client whose reply has begun or not. */
async function deny(cause: UpstreamError | AdapterError, hasLeft: boolean, own: Partial<Run> = {}) {
  const parts: [number, number][] = []
  const reply: Reply = {
    settle: (index, { status }) => parts.push([index, status]),
    begin: () => undefined,
    hasLeft: () => hasLeft,
    end: () => Promise.resolve(),
  }
  const session: WriteSession = {
    partner: 'acme',
    budgetMs: 0,
    withdrawn: new Promise(() => undefined),
    postRecords: () => Promise.resolve(cause),
    denied: () => true,
    queuedMs: () => 0,
    timing: () => undefined,
  }
  const plan: Plan = {
    records: [plannedRecord(1), refusedRecord, plannedRecord(2)],
    unmappedFields: 0,
    convertedFields: 0,
    changesets: 1,
    outcomesShown: true,
    ids: undefined,
  }
  const context = createWriteContext()
  const run: Run = {
    batch: 1,
    lease: 1,
    receivedMs: 0,
    plan,
    positions: [0, 1, 2],
    after: new Map(),
    mayHaveLeft: (position) => position === 2,
    clientWaits: true,
    replyContext: { context: '', newId: () => guid(1), dataEnvelope: false },
    ...own,
  }
  const ended = await runForClient(context, session, reply, run).then(
    (tally) => ({ tally }),
    (error: unknown) => ({ error }),
  )
  return { ...ended, parts, orphans: [...context.orphans.keys()], context, session, reply, run }
}

it('answers the whole request with the denial while its reply has not begun', async () => {
  const { error, parts } = await deny(denied(401, 'No.'), false).then((end) => ({ error: undefined, ...end }))
  expect([error, parts]).toMatchObject([{ code: 'ADP_TOKEN', message: 'No.' }, []])
})

it('answers with the error of the token endpoint, which V3 did not give', async () => {
  const own = new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'No token.')
  const { error } = await deny(own, false).then((end) => ({ error: undefined, ...end }))
  expect(error).toBe(own)
})

it('answers record by record once the reply has begun', async () => {
  const { tally, parts } = await deny(denied(403), true).then((end) => ({ tally: undefined, ...end }))
  expect(tally).toEqual({ accepted: 0, refused: 0, notApplied: 1, unknown: 1 })
  expect(parts).toEqual([[0, 503], [2, 504]]) // prettier-ignore
})

it('leaves records to recovery that another run of this process has', async () => {
  const first = await deny(denied(403), true)
  const { context, session, reply, run } = first
  const claim = context.active.claim(1, [0], 3, 1)
  const tally = await runForClient(context, session, reply, run)
  claim.end()
  expect(tally.unknown + tally.notApplied).toBe(1)
  expect(context.orphans.get(1)?.after).toEqual(new Map([[0, []]]))
})
