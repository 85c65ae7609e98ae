import { expect, test } from 'vitest'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import type { Answer, History, WriteHistory } from '../load/history.ts'
import type { Write } from '../load/write.ts'
import type { Forward } from '../proxy/forwards.ts'
import { checkHistory } from './check-history.ts'

const usual: Omit<Write, 'name' | 'comment'> = {
  learner: 'learner-1', event: 'event-1', code: 'code-1', present: true, absent: false, minutesLate: null, valid: true,
} // prettier-ignore

function effect(name: string, seq: number, fields: Partial<EffectEntry> = {}): EffectEntry {
  const { learner, event, code, present, absent, minutesLate } = usual
  const write = { learner, event, code, present, absent, minutesLate }
  return { seq, face: 'V3', ...write, comment: name, externalId: 'id-1', ...fields }
}

/** Answers come as `[at, answer]`. */
function sent(
  name: string,
  sentAt: number,
  answers: readonly [number, Answer][],
  fields: Partial<Omit<WriteHistory, 'write'>> & { write?: Partial<Write> } = {},
): WriteHistory {
  const { write = {}, ...place } = fields
  return {
    batch: sentAt, position: 0, sentAt, sends: [sentAt], ...place,
    write: { ...usual, name, comment: name, ...write },
    answers: answers.map(([at, answer]) => ({ at, answer })),
  } // prettier-ignore
}

function created(comment: string, fields: object = {}): Answer {
  const { learner, event, code } = usual
  return { kind: 'created', mark: { externalId: 'id-1', learner, event, code, comment, ...fields } }
}

const refused: Answer = { kind: 'refused', status: 400 }
const notApplied: Answer = { kind: 'notApplied' }
const busy: Answer = { kind: 'busy' }
const unknown: Answer = { kind: 'unknown' }
const noOutcome: Answer = { kind: 'noOutcome' }
const superseded: Answer = { kind: 'superseded' }
const invalid = { write: { valid: false } }

function check(writes: WriteHistory[], effects: EffectEntry[], more: Partial<History> = {}): string[] {
  const { findings } = checkHistory({ ...calm, writes, ...more }, effects)
  return findings.map(({ kind, of, because }) => `${kind} ${of}: ${because}`)
}

const calm: History = { writes: [], replays: 0, changedReplays: [], missingReplays: [], changedParts: [] }
const none: string[] = []
const rows: [name: string, writes: WriteHistory[], effects: EffectEntry[], findings: string[]][] = [
  ['created and recorded once', [sent('a', 1, [[2, created('a')]])], [effect('a', 1)], none],
  ['refused and not recorded', [sent('a', 1, [[2, refused]], invalid)], [], none],
  ['created in the end, after answers that were not final', [sent('a', 1, [[2, notApplied], [3, unknown], [4, created('a')]])], [effect('a', 1)], none],
  ['created twice over', [sent('a', 1, [[2, created('a')], [3, created('a')]])], [effect('a', 1)], none],
  ['turned away after it was recorded, and before it was told', [sent('a', 1, [[2, busy], [3, created('a')], [4, busy]])], [effect('a', 1)], none],
  ['turned away to the end', [sent('a', 1, [[2, busy]])], [effect('a', 1)], ['unsettled a: told busy at last, recorded 1 times']],
  ['created, never recorded', [sent('a', 1, [[2, created('a')]])], [], ['lost a: told created, never recorded']],
  ['recorded twice', [sent('a', 1, [[2, created('a')]])], [effect('a', 1), effect('a', 4)], ['doubled a: recorded as effects 1, 4']],
  ['no answer at all', [sent('a', 1, [])], [effect('a', 1)], ['unsettled a: told nothing at last, recorded 1 times']],
  ['unknown to the end', [sent('a', 1, [[2, notApplied], [3, unknown]])], [], ['unsettled a: told unknown at last, recorded 0 times']],
  ['not applied at last, though recorded', [sent('a', 1, [[3, notApplied]])], [effect('a', 1)], ['unsettled a: told notApplied at last, recorded 1 times', 'falseAnswer a: told not applied, but recorded']],
  ['refused, though recorded', [sent('a', 1, [[2, refused]], invalid)], [effect('a', 1)], ['falseAnswer a: told 400, but recorded']],
  ['refused for nothing', [sent('a', 1, [[2, refused]])], [], ['falseAnswer a: told 400, but nothing is wrong with it']],
  ['created, though no service would', [sent('a', 1, [[2, created('a')]], invalid)], [effect('a', 1)], ['falseAnswer a: told created, but the service knows no such code']],
  ['created with the record of another', [sent('a', 1, [[2, created('b')]])], [effect('a', 1)], ['falseAnswer a: told created with the record of b']],
  ['created with another code', [sent('a', 1, [[2, created('a', { code: 'code-2' })]])], [effect('a', 1)], ['falseAnswer a: told created with another code']],
  ['created with an id of another mark', [sent('a', 1, [[2, created('a', { externalId: 'id-2' })]])], [effect('a', 1)], ['falseAnswer a: told created with an id that it does not have']],
  ['created and then unknown', [sent('a', 1, [[2, created('a')], [3, unknown]])], [effect('a', 1)], ['falseAnswer a: told created and then unknown']],
  ['created, with a reply without an outcome between', [sent('a', 1, [[2, noOutcome], [3, created('a')], [4, noOutcome], [5, created('a')]])], [effect('a', 1)], none],
  ['without an outcome to the end', [sent('a', 1, [[2, noOutcome]])], [effect('a', 1)], ['unsettled a: told noOutcome at last, recorded 1 times']],
  ['recorded, but never sent', [], [effect('x', 1)], ['stranger x: recorded, but no client sent it']],
  ['recorded without its name', [], [effect('x', 1, { comment: null })], ['stranger effect 1: recorded, but no client sent it']],
  ['recorded with other values', [sent('a', 1, [[2, created('a')]])], [effect('a', 1, { code: 'code-2', minutesLate: 3 })], ['stranger a: recorded with another code, minutesLate']],
] // prettier-ignore

test.each(rows)('%s', (_name, writes, effects, findings) => {
  expect(check(writes, effects)).toEqual(findings)
})

const onItsOwn = ['falseAnswer a: told not applied, then applied without its client']
const times: [name: string, write: WriteHistory, forwards: Forward[], findings: string[]][] = [
  ['not applied, sent again, applied', sent('a', 1, [[2, notApplied], [6, created('a')]], { sends: [1, 4] }), [{ at: 5, status: 201 }], none],
  ['not applied, then applied before it was sent again', sent('a', 1, [[2, notApplied], [6, created('a')]], { sends: [1, 4] }), [{ at: 3, status: 201 }], onItsOwn],
  ['not applied, then applied without an answer to the adapter', sent('a', 1, [[2, notApplied], [6, created('a')]], { sends: [1, 4] }), [{ at: 3, status: undefined }], onItsOwn],
  ['not applied, refused by the service before, applied after', sent('a', 1, [[3, notApplied], [6, created('a')]], { sends: [1, 4] }), [{ at: 2, status: 503 }, { at: 5, status: 201 }], none],
  ['not applied, though it was', sent('a', 1, [[3, notApplied], [6, created('a')]], { sends: [1, 4] }), [{ at: 2, status: 201 }], ['falseAnswer a: told not applied, but the service had it']],
  ['turned away as a whole, then applied on its own', sent('a', 1, [[2, busy], [6, created('a')]], { sends: [1, 4] }), [{ at: 3, status: 201 }], onItsOwn],
  ['turned away as a whole when it was under way', sent('a', 1, [[3, busy], [6, created('a')]], { sends: [1, 2, 5] }), [{ at: 4, status: 201 }], none],
  ['created before it was sent', sent('a', 1, [[2, created('a')]]), [{ at: 3, status: 201 }], ['falseAnswer a: told created before it was sent to the service']],
] // prettier-ignore

test.each(times)('%s', (_name, write, forwards, findings) => {
  const context = { forwards: new Map([['a', forwards]]) }
  const checked = checkHistory({ ...calm, writes: [write] }, [effect('a', 1)], context)
  expect(checked.findings.map(({ kind, of, because }) => `${kind} ${of}: ${because}`)).toEqual(findings)
})

test('a final part that came again with other bytes', () => {
  expect(check([], [], { changedParts: [{ name: 'a', first: 'same, old', later: 'same, new' }] })).toEqual([
    'changedReply a: its final answer came again with other bytes: "same, old", then "same, new"',
  ])
})

const alterations: [comment: string, echoed: string, isOwn: boolean][] = [
  [' w-000001 ', 'w-000001', true],
  ['w-000001 Jose\u0301', 'w-000001 Jos\u00e9', true],
  ['w-000001 a\r\nb', 'w-000001 a\nb', true],
  ['w-000001 long', 'w-000001 lo', true],
  ['w-000001', 'w-000001 other', false],
]

test.each(alterations)(
  'sent as %j, answered as %j by a service that alters values: its own, %s',
  (comment, echoed, isOwn) => {
    const name = 'w-000001'
    const write = sent(name, 1, [[2, created(echoed)]], { write: { name, comment } })
    const kinds = (alters: boolean): string[] =>
      checkHistory({ ...calm, writes: [write] }, [effect(comment, 1)], { alters }).findings.map(
        ({ kind }) => kind,
      )
    expect([kinds(true), kinds(false)]).toEqual([isOwn ? [] : ['falseAnswer'], ['falseAnswer']])
  },
)

const late = ['order old: recorded as 2, after the newer new (1)']
const inBatch = (position: number): Partial<WriteHistory> => ({ batch: 7, position })
const pairs: [name: string, older: WriteHistory, newer: WriteHistory, findings: string[]][] = [
  ['sent after the older one was created', sent('old', 1, [[2, created('old')]]), sent('new', 3, [[4, created('new')]]), late],
  ['sent after the older one was told unknown', sent('old', 1, [[2, unknown], [9, created('old')]]), sent('new', 3, [[4, created('new')]]), late],
  ['further on in the same batch', sent('old', 1, [[2, created('old')]], inBatch(0)), sent('new', 1, [[2, created('new')]], inBatch(1)), late],
  ['sent while the older one was under way', sent('old', 1, [[5, created('old')]]), sent('new', 3, [[4, created('new')]]), none],
  ['sent when the older one was not applied', sent('old', 1, [[2, notApplied], [9, created('old')]]), sent('new', 3, [[4, created('new')]]), none],
  ['of another learner', sent('old', 1, [[2, created('old')]]), sent('new', 3, [[4, created('new', { learner: 'learner-2' })]], { write: { learner: 'learner-2' } }), none],
] // prettier-ignore

test.each(pairs)('an older write recorded after a newer one, %s', (_name, older, newer, findings) => {
  const effects = [effect('new', 1, { learner: newer.write.learner }), effect('old', 2)]
  expect(check([older, newer], effects)).toEqual(findings)
})

test('a second effect of the older write that overwrites the newer one is doubled and out of order', () => {
  const writes = [sent('old', 1, [[2, created('old')]]), sent('new', 3, [[4, created('new')]])]
  const findings = check(writes, [effect('old', 1), effect('new', 2), effect('old', 3)])
  expect(findings).toEqual([
    'doubled old: recorded as effects 1, 3',
    'order old: recorded as 3, after the newer new (2)',
  ])
})

test('a finished batch that is answered otherwise the second time', () => {
  expect(check([], [], { replays: 2, changedReplays: [5] })).toEqual([
    'changedReply batch 5: the same batch, finished, was answered with other bytes',
  ])
})

test('a finished batch that is not answered again', () => {
  expect(check([], [], { missingReplays: [5] })).toEqual([
    'changedReply batch 5: the same batch, finished, was not answered again though nothing was broken',
  ])
})

const supersededOnes: [name: string, older: WriteHistory, effects: EffectEntry[], findings: string[]][] = [
  ['and it was', sent('old', 1, [[2, notApplied], [9, superseded]]), [effect('new', 1)], none],
  ['though it was recorded', sent('old', 1, [[2, notApplied], [9, superseded]]), [effect('old', 1), effect('new', 2)], ['falseAnswer old: told superseded, but recorded']],
  ['though the newer one was never recorded', sent('old', 1, [[9, superseded]]), [], ['lost new: told created, never recorded', 'falseAnswer old: told superseded, but no newer one was recorded']],
  ['and not applied after that', sent('old', 1, [[2, superseded], [9, notApplied]]), [effect('new', 1)], ['falseAnswer old: told superseded and then notApplied']],
  ['by one that was there before it', sent('old', 5, [[6, superseded]]), [effect('new', 1)], ['falseAnswer old: told superseded, but no newer one was recorded']],
] // prettier-ignore

test.each(supersededOnes)(
  'a write told that a newer one has overtaken it, %s',
  (_name, older, effects, findings) => {
    expect(check([older, sent('new', 3, [[4, created('new')]])], effects)).toEqual(findings)
  },
)

const conflicts: [name: string, first: EffectEntry[], findings: string[]][] = [
  ['and there is another mark', [effect('first', 1)], none],
  ['though there is none', [], ['lost first: told created, never recorded', 'falseAnswer second: told 409, but nothing is wrong with it']],
  ['though it was recorded', [effect('first', 1), effect('second', 2)], ['falseAnswer second: told 409, but recorded']],
] // prettier-ignore

test.each(conflicts)('a service that takes one mark refuses a second one, %s', (_name, effects, findings) => {
  const second = sent('second', 3, [[4, { kind: 'refused', status: 409 }]])
  const writes = [sent('first', 1, [[2, created('first')]]), second]
  const checked = checkHistory({ ...calm, writes }, effects, { oneMark: true })
  expect(checked.findings.map(({ kind, of, because }) => `${kind} ${of}: ${because}`)).toEqual(findings)
})

const overtakings: [name: string, older: WriteHistory, newer: WriteHistory, overtaken: number][] = [
  ['later', sent('old', 1, [[2, unknown]]), sent('new', 3, [[4, created('new')]]), 1],
  ['at the same time', sent('old', 2, [[5, unknown]]), sent('new', 1, [[4, created('new')]]), 1],
  ['before it', sent('old', 5, [[6, unknown]]), sent('new', 1, [[4, created('new')]]), 0],
  ['later, and it says so', sent('old', 1, [[2, unknown], [5, superseded]]), sent('new', 3, [[4, created('new')]]), 1],
  ['of another session', sent('old', 1, [[2, unknown]]), sent('new', 3, [[4, created('new', { event: 'event-2' })]], { write: { event: 'event-2' } }), 0],
] // prettier-ignore

test.each(overtakings)(
  'a write that was not recorded, with one that was sent %s',
  (_name, older, newer, overtaken) => {
    const effects = [effect('new', 1, { event: newer.write.event })]
    const checked = checkHistory({ ...calm, writes: [older, newer] }, effects)
    expect([checked.overtaken, checked.findings.map(({ kind }) => kind)]).toEqual([
      overtaken,
      overtaken === 1 ? [] : ['unsettled'],
    ])
  },
)

test('a write that went to the service with the token of another client was lent', () => {
  const write = sent('a', 1, [[4, created('a')]], { token: 'one' })
  const find = (token: string): string[] => {
    const forwards = new Map([['a', [{ at: 2, status: 201, token }]]])
    return checkHistory({ ...calm, writes: [write] }, [effect('a', 1)], { forwards }).findings.map(
      ({ kind }) => kind,
    )
  }
  expect([find('one'), find('other')]).toEqual([[], ['lent']])
})
