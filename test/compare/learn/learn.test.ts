import { randomUUID } from 'node:crypto'

import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

import { type LearnedExchange, observeExchange } from '../../../src/compare/learn/observe-exchange.ts'
import { formatPatch, type LearnableSettings, propose } from '../../../src/compare/learn/propose.ts'
import {
  type BatchLayout,
  createBatchEncoder,
  defaultBatchLimits,
  encodeErrorArray,
  encodeMismatch,
  envelopRecord,
} from '../../../src/v2/index.ts'
import { batchOf, flatRecord } from '../../support/batch-request.ts'

const defaults: LearnableSettings = {
  layout: 'flat',
  quirks: { dataEnvelope: false, msgtypeResponse: false, mismatch: 'post' },
  errorMessages: {},
  v3: {
    eventType: 'Attendance.AttendanceSession',
    codeType: 'Attendance.Lookup',
  },
}

interface Face {
  readonly layout?: BatchLayout
  readonly msgtype?: boolean
  readonly envelope?: boolean
  readonly isGeneric?: boolean
  readonly json?: string
  readonly message?: string
}

/** Builds an exchange in which V2 refuses the second of two records. The choices set the form of V2's reply. */
function exchangeWith({
  layout = 'flat',
  msgtype = false,
  envelope = false,
  isGeneric = false,
  json,
  message = 'The AttendableEvent does not exist.',
}: Face = {}): LearnedExchange {
  const encoder = createBatchEncoder(layout, randomUUID, msgtype)
  const mark =
    json ?? JSON.stringify({ ExternalID: randomUUID(), Comment: 'Content-Type: multipart/mixed\r\nAda' })
  const part = { contentIdInHttp: false, changeset: 1 }
  const refusal = encodeErrorArray([{ code: 'ATT_VAL_2', message }], randomUUID())
  const body =
    encoder.part({ ...part, contentId: '1', status: 201, json: envelope ? envelopRecord(mark) : mark }) +
    encoder.part({ ...part, contentId: '2', status: 400, json: refusal }) +
    encoder.close(1)
  const request = batchOf([flatRecord(1), flatRecord(2)])
  const accept = isGeneric ? ['Accept', 'multipart/mixed'] : []
  return {
    kind: 'batch',
    request: {
      fields: ['Content-Type', request.headers['Content-Type'] ?? '', ...accept],
      body: Buffer.from(request.body),
    },
    reply: replyOf(200, encoder.contentType, body),
  }
}

const replyOf = (status: number, contentType: string, body: string): LearnedExchange['reply'] => ({
  ...{ status, reason: '', fields: ['Content-Type', contentType], body: Buffer.from(body) },
})

function learn(exchanges: readonly LearnedExchange[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const exchange of exchanges)
    for (const name of observeExchange(exchange, defaultBatchLimits))
      counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

function changes(exchanges: readonly LearnedExchange[], settings = defaults): Record<string, unknown> {
  const { proposals } = propose(learn(exchanges), settings)
  return Object.fromEntries(
    proposals.filter(({ result }) => result === 'change').map(({ path, proposed }) => [path, proposed]),
  )
}

const results = (exchanges: readonly LearnedExchange[]): Record<string, string> =>
  Object.fromEntries(propose(learn(exchanges), defaults).proposals.map(({ path, result }) => [path, result]))

describe('compare learn', () => {
  it.each<readonly [string, Face, Record<string, unknown>]>([
    ['nothing for a reply in the documented form', {}, {}],
    [
      'nothing for an error text that may contain a value',
      { message: 'The AttendableEvent 4711 does not exist.' },
      {},
    ],
    [
      'v3.eventType for a reply with a Type string',
      { json: JSON.stringify({ Event: { ExternalID: 'x', Type: 'Attendance.StatutoryAttendanceSession' } }) },
      { 'v3.eventType': 'Attendance.StatutoryAttendanceSession' },
    ],
  ])('proposes %s after one batch', (_, face, expected) => {
    expect(changes([exchangeWith(face)])).toEqual(expected)
  })

  it('states that generic clients need layout: auto if V2 sent flat replies to such clients', () => {
    const patchOf = (settings: typeof defaults): string =>
      formatPatch('acme', propose(learn([exchangeWith({ isGeneric: true })]), settings))
    expect(patchOf(defaults)).toMatch(/# layout: flat \w+: 1 × flat replies to generic clients; .* need auto/)
    expect(patchOf({ ...defaults, layout: 'nested' })).toMatch(/layout: flat # 1 × .* need auto/)
  })

  it('proposes layout: auto if V2 sends nested replies to generic clients only', () => {
    const both = [exchangeWith(), exchangeWith({ layout: 'nested', isGeneric: true })]
    expect(changes(both)).toEqual({ layout: 'auto' })
    expect(changes(both, { ...defaults, layout: 'auto' })).toEqual({})
  })

  it('proposes nothing, and reports the contradiction, if V2 sends replies in different forms to the same kind of client', () => {
    const both = [exchangeWith(), exchangeWith({ layout: 'nested', envelope: true })]
    expect(changes(both)).toEqual({})
    expect(results(both)).toMatchObject({ layout: 'contradictory', 'quirks.dataEnvelope': 'contradictory' })
    expect(formatPatch('acme', propose(learn(both), defaults))).toContain(
      'contradictory: 1 × flat replies to plain V2 clients, 1 × nested replies to plain V2 clients',
    )
  })

  it('proposes nothing if no batch succeeded', () => {
    expect(new Set(Object.values(results([])))).toEqual(new Set(['none']))
    const refused: LearnedExchange = { ...exchangeWith(), reply: replyOf(401, 'text/plain', 'no') }
    expect(new Set(Object.values(results([refused])))).toEqual(new Set(['none']))
  })

  it('proposes quirks.mismatch: post only if a batch with mismatched ids got a reply with parts', () => {
    const exchange = exchangeWith()
    const otherIds = `multipart/mixed; boundary=batch_${randomUUID()}`
    const request = { ...exchange.request, fields: ['Content-Type', otherIds] }
    const { contentType, body } = encodeMismatch(randomUUID)
    const empty = { ...exchange, request, reply: replyOf(200, contentType, body) }
    const settings = { ...defaults, quirks: { ...defaults.quirks, mismatch: 'drop' } }
    expect(changes([{ ...exchange, request }], settings)).toEqual({ 'quirks.mismatch': 'post' })
    expect(changes([empty], settings)).toEqual({})
    expect(learn([empty]).get('mismatch/empty')).toBe(1)
    const { proposals } = propose(learn([empty]), settings)
    expect(proposals.find(({ path }) => path === 'quirks.mismatch')).toMatchObject({
      result: 'none',
      evidence: [{ count: 1 }],
      note: expect.any(String) as unknown,
    })
    // The empty reply is nested, but a reply without parts shows nothing about the layout.
    expect(results([empty])).toMatchObject({ layout: 'none' })
  })

  it('formats a patch that shows for each line the counts on which it is based', () => {
    const exchanges = Array.from({ length: 3 }, () => exchangeWith({ layout: 'nested', msgtype: true }))
    const text = formatPatch('acme', propose(learn(exchanges), defaults))
    expect(text.split('\n').slice(0, 6)).toEqual([
      '# observed: 3 batches, 0 single records, 0 reads',
      'partners:',
      '  - id: acme',
      '    layout: nested # 3 × nested replies to plain V2 clients',
      '    quirks:',
      '      msgtypeResponse: true # 3 × parts with msgtype=response',
    ])
    expect(text).toContain('# error 400 ATT_VAL_2: The AttendableEvent does not exist. (3)')
    const message = 'The AttendableEvent of the record does not exist.'
    const withText = formatPatch('acme', propose(learn([exchangeWith({ message })]), defaults))
    expect(parse(withText)).toEqual({ partners: [{ id: 'acme', errorMessages: { ATT_VAL_2: message } }] })
  })

  it.each([
    'Learner Ada Lovelace does not exist.',
    'The learner 4711 does not exist.',
    'The AttendableEvent "x" does not exist.',
    `The event ${randomUUID()} does not exist.`,
    'The event does not exist. Ada is absent.',
    'x'.repeat(300),
  ])('withholds an error text that may name a learner: %s', (message) => {
    const json = encodeErrorArray(
      [
        { code: 'ATT_VAL_2', message },
        { code: 'Ada_Lovelace', message },
      ],
      randomUUID(),
    )
    const reply = replyOf(400, 'application/json', json)
    const learned = learn([{ ...exchangeWith(), kind: 'record', reply }])
    expect([...learned.keys()]).toEqual([
      'exchange/record',
      'error/400/ATT_VAL_2/(withheld)',
      'error/400/(withheld)/(withheld)',
    ])
  })

  it('ignores Type strings that may name a learner', () => {
    const json = JSON.stringify({
      Event: { Type: 'Ada.Lovelace' },
      Attendee: { Type: 'Learner.Identifier.4711' },
      Learner: { Type: 'x' },
    })
    expect([...learn([exchangeWith({ json })]).keys()].filter((name) => name.startsWith('type/'))).toEqual([])
  })
})
