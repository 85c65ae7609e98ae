import { expect, test } from 'vitest'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import type { Answer, History, WriteHistory } from '../load/history.ts'
import type { Write } from '../load/write.ts'
import type { Forward } from '../proxy/forwards.ts'
import { type CheckContext, checkHistory } from './check-history.ts'
import { checkLedger } from './ledger.ts'

const usual = {
  learner: 'learner-1', event: 'event-1', code: 'code-1', present: true, absent: false, minutesLate: null,
} // prettier-ignore

function effect(name: string, seq: number, fields: Partial<EffectEntry> = {}): EffectEntry {
  return { seq, face: 'V3', ...usual, comment: name, externalId: 'id-1', ...fields }
}
/** Builds effects in order, each on a face. */
const effects = (...rows: [name: string, face: EffectEntry['face']][]): EffectEntry[] =>
  rows.map(([name, face], index) => effect(name, index + 1, { face }))

/** Builds a write that was sent at these times. Answers are given as `[at, answer]`. */
function sent(
  name: string,
  sends: number | readonly number[],
  answers: readonly [number, Answer][],
  fields: Partial<Omit<WriteHistory, 'write'>> & { write?: Partial<Write> } = {},
): WriteHistory {
  const { write = {}, ...place } = fields
  const all = typeof sends === 'number' ? [sends] : sends
  const [sentAt = 0] = all
  return {
    batch: sentAt, position: 0, sentAt, sends: all, ...place,
    write: { ...usual, valid: true, name, comment: name, ...write },
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

type Given = Omit<CheckContext, 'forwards'> &
  Partial<History> & { readonly forwards?: Readonly<Record<string, readonly Forward[]>> }

function checked(writes: WriteHistory[], recorded: EffectEntry[], { forwards, ...more }: Given = {}) {
  const calm = { replays: 0, changedReplays: [], missingReplays: [], changedParts: [] }
  const context = forwards === undefined ? more : { ...more, forwards: new Map(Object.entries(forwards)) }
  return checkHistory({ ...calm, ...more, writes }, recorded, context)
}
const check = (...given: Parameters<typeof checked>): string[] =>
  checked(...given).findings.map(({ kind, of, because }) => `${kind} ${of}: ${because}`)
/** Returns the kinds of findings and the names of their writes. */
const kindsOf = (...given: Parameters<typeof checked>): string[] =>
  checked(...given).findings.map(({ kind, of }) => `${kind} ${of}`)

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

test.each(rows)('%s', (_name, writes, recorded, findings) => {
  expect(check(writes, recorded)).toEqual(findings)
})

const onItsOwn = ['falseAnswer a: told not applied, then applied without its client']
const times: [name: string, write: WriteHistory, forwards: Forward[], findings: string[]][] = [
  ['not applied, sent again, applied', sent('a', [1, 4], [[2, notApplied], [6, created('a')]]), [{ at: 5, status: 201 }], none],
  ['not applied, then applied before it was sent again', sent('a', [1, 4], [[2, notApplied], [6, created('a')]]), [{ at: 3, status: 201 }], onItsOwn],
  ['not applied, then applied without an answer to the adapter', sent('a', [1, 4], [[2, notApplied], [6, created('a')]]), [{ at: 3, status: undefined }], onItsOwn],
  ['not applied, refused by the service before, applied after', sent('a', [1, 4], [[3, notApplied], [6, created('a')]]), [{ at: 2, status: 503 }, { at: 5, status: 201 }], none],
  ['not applied, though it was', sent('a', [1, 4], [[3, notApplied], [6, created('a')]]), [{ at: 2, status: 201 }], ['falseAnswer a: told not applied, but the service had it']],
  ['turned away as a whole, then applied on its own', sent('a', [1, 4], [[2, busy], [6, created('a')]]), [{ at: 3, status: 201 }], onItsOwn],
  ['turned away as a whole when it was under way', sent('a', [1, 2, 5], [[3, busy], [6, created('a')]]), [{ at: 4, status: 201 }], none],
  ['created before it was sent', sent('a', 1, [[2, created('a')]]), [{ at: 3, status: 201 }], ['falseAnswer a: told created before it was sent to the service']],
] // prettier-ignore

test.each(times)('%s', (_name, write, forwards, findings) => {
  expect(check([write], [effect('a', 1)], { forwards: { a: forwards } })).toEqual(findings)
})

const again: [name: string, given: Partial<History>, finding: string][] = [
  ['in one of its final parts', { changedParts: [{ name: 'a', first: 'same, old', later: 'same, new' }] }, 'changedReply a: its final answer came again with other bytes: "same, old", then "same, new"'],
  ['as a whole', { replays: 2, changedReplays: [5] }, 'changedReply batch 5: the same batch, finished, was answered with other bytes'],
  ['with nothing', { missingReplays: [5] }, 'changedReply batch 5: the same batch, finished, was not answered again though nothing was broken'],
] // prettier-ignore

test.each(again)('the check compares the second answer to a finished batch, %s', (_name, given, finding) => {
  expect(check([], [], given)).toEqual([finding])
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
    const kinds = (alters: boolean): string[] => kindsOf([write], [effect(comment, 1)], { alters })
    const falseAnswer = [`falseAnswer ${name}`]
    expect([kinds(true), kinds(false)]).toEqual([isOwn ? [] : falseAnswer, falseAnswer])
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

test.each(pairs)(
  'the check judges an older write that was recorded after a newer one, %s',
  (_name, older, newer, findings) => {
    const recorded = [effect('new', 1, { learner: newer.write.learner }), effect('old', 2)]
    expect(check([older, newer], recorded)).toEqual(findings)
  },
)

test('the check reports a second effect of an older write over a newer one as doubled and out of order', () => {
  const writes = [sent('old', 1, [[2, created('old')]]), sent('new', 3, [[4, created('new')]])]
  const findings = check(writes, [effect('old', 1), effect('new', 2), effect('old', 3)])
  expect(findings).toEqual([
    'doubled old: recorded as effects 1, 3',
    'order old: recorded as 3, after the newer new (2)',
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
  'the check judges a write that was reported as superseded, %s',
  (_name, older, recorded, findings) => {
    expect(check([older, sent('new', 3, [[4, created('new')]])], recorded)).toEqual(findings)
  },
)

const conflicts: [name: string, first: EffectEntry[], findings: string[]][] = [
  ['and there is another mark', [effect('first', 1)], none],
  ['though there is none', [], ['lost first: told created, never recorded', 'falseAnswer second: told 409, but nothing is wrong with it']],
  ['though it was recorded', [effect('first', 1), effect('second', 2)], ['falseAnswer second: told 409, but recorded']],
] // prettier-ignore

test.each(conflicts)(
  'the check judges a service that keeps one mark and refuses a second, %s',
  (_name, recorded, findings) => {
    const second = sent('second', 3, [[4, { kind: 'refused', status: 409 }]])
    const writes = [sent('first', 1, [[2, created('first')]]), second]
    expect(check(writes, recorded, { oneMark: true })).toEqual(findings)
  },
)

const overtakings: [name: string, older: WriteHistory, newer: WriteHistory, overtaken: number][] = [
  ['later', sent('old', 1, [[2, unknown]]), sent('new', 3, [[4, created('new')]]), 1],
  ['at the same time', sent('old', 2, [[5, unknown]]), sent('new', 1, [[4, created('new')]]), 1],
  ['before it', sent('old', 5, [[6, unknown]]), sent('new', 1, [[4, created('new')]]), 0],
  ['later, and it says so', sent('old', 1, [[2, unknown], [5, superseded]]), sent('new', 3, [[4, created('new')]]), 1],
  ['of another session', sent('old', 1, [[2, unknown]]), sent('new', 3, [[4, created('new', { event: 'event-2' })]], { write: { event: 'event-2' } }), 0],
] // prettier-ignore

test.each(overtakings)(
  'the check judges a write that was not recorded, with another one that was sent %s',
  (_name, older, newer, overtaken) => {
    const result = checked([older, newer], [effect('new', 1, { event: newer.write.event })])
    const kinds = result.findings.map(({ kind }) => kind)
    expect([result.overtaken, kinds]).toEqual([overtaken, overtaken === 1 ? [] : ['unsettled']])
  },
)

test('the check reports a write as lent when it reached the service with the token of another client', () => {
  const write = sent('a', 1, [[4, created('a')]], { token: 'one' })
  const find = (token: string): string[] =>
    kindsOf([write], [effect('a', 1)], { forwards: { a: [{ at: 2, status: 201, token }] } })
  expect([find('one'), find('other')]).toEqual([[], ['lent a']])
})

const relayed = (at: number, sentAt: number): Forward => ({ at, status: 200, face: 'V2', sentAt })
const posted = (at: number): Forward => ({ at, status: 201, face: 'V3' })

const twice = sent('a', [1, 4], [[3, noOutcome], [6, created('a')]]) // prettier-ignore

test.each<[string, EffectEntry[], Forward[], string[]]>([
  ['V2 alone, as often as it was sent', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1), relayed(5, 4)], []],
  ['V2 more often than it was sent', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1)], ['doubled a']],
  ['V2 with one request that was relayed twice', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1), relayed(5, 1)], ['doubled a']],
  ['V2 with a request that no client has sent', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1), relayed(5, 3)], ['doubled a']],
  ['both faces', effects(['a', 'V2'], ['a', 'V3']), [relayed(2, 1), posted(5)], ['doubled a']],
  ['V3', effects(['a', 'V3'], ['a', 'V3']), [posted(2), posted(5)], ['doubled a']],
])('the check judges a write that was sent twice and recorded twice by %s', (_name, recorded, forwards, kinds) => {
  expect(kindsOf([twice], recorded, { forwards: { a: forwards } })).toEqual(kinds)
}) // prettier-ignore

const old = sent('old', [1, 7], [[3, created('old')], [9, created('old')]]) // prettier-ignore
const newer = sent('new', 4, [[6, created('new')]])
const resent = [relayed(2, 1), relayed(8, 7)]

test.each<[string, EffectEntry[], Record<string, Forward[]>, string[]]>([
  ['by V2 alone, since its client sent it once more', effects(['old', 'V2'], ['new', 'V2'], ['old', 'V2']), { old: resent, new: [relayed(5, 4)] }, []],
  ['by V2 alone over one of V3, since its client sent it once more', effects(['old', 'V2'], ['new', 'V3'], ['old', 'V2']), { old: resent, new: [posted(5)] }, []],
  ['by V2, though V3 was sent it too', effects(['old', 'V2'], ['new', 'V3'], ['old', 'V2']), { old: [...resent, posted(3)], new: [posted(5)] }, ['order old']],
  ['by V2, though only its first request was relayed, late', effects(['new', 'V2'], ['old', 'V2']), { old: [relayed(8, 1)], new: [relayed(5, 4)] }, ['falseAnswer old', 'order old']],
  ['by V3', effects(['new', 'V2'], ['old', 'V3']), { old: [posted(8)], new: [relayed(5, 4)] }, ['falseAnswer old', 'order old']],
])('the check judges an older write that is recorded after a newer one %s', (_name, recorded, forwards, kinds) => {
  expect(kindsOf([old, newer], recorded, { forwards })).toEqual(kinds)
}) // prettier-ignore

test('the check needs no final answer for a write that its client gave up, but reports it when it is recorded twice', () => {
  const abandoned = sent('a', 1, [[3, noOutcome]], { isAbandoned: true })
  expect(kindsOf([abandoned], [])).toEqual([])
  const recorded = effects(['a', 'V2'], ['a', 'V3'])
  expect(kindsOf([abandoned], recorded, { forwards: { a: [relayed(2, 1), posted(5)] } })).toEqual([
    'doubled a',
  ])
})

const retried = sent('retried', [1, 4], [[3, noOutcome], [9, created('retried')]]) // prettier-ignore
const gone = sent('gone', 5, [[10, superseded]])

test.each<[string, Forward[], string[]]>([
  ['after that one was sent', [relayed(8, 4)], []],
  ['before that one was sent', [relayed(2, 1)], ['falseAnswer gone']],
])(
  'the check judges a write that gave way to an older one, which was sent to V2 again %s',
  (_name, forwards, kinds) => {
    const given = { forwards: { retried: forwards, gone: [] } }
    expect(kindsOf([retried, gone], effects(['retried', 'V2']), given)).toEqual(kinds)
  },
)

/** Builds two writes of a school. V2 received the older one, and the newer one left its client at 5. */
const drained: [name: string, sends: number[], school: string, recorded: EffectEntry[], forwards: { old: Forward[]; new: Forward[] }, findings: string[]][] = [
  ['before the newer one was sent', [1], 'school-1', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(2, 1)], new: [posted(6)] }, ['order old']],
  ['and recorded first', [1], 'school-1', effects(['old', 'V2'], ['new', 'V3']), { old: [relayed(2, 1)], new: [posted(6)] }, []],
  ['after the newer one was sent', [1], 'school-1', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(6, 1)], new: [posted(6)] }, []],
  ['and again after the newer one was sent', [1, 7], 'school-1', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(2, 1), relayed(8, 7)], new: [posted(6)] }, []],
  ['for another school', [1], 'school-2', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(2, 1)], new: [posted(6)] }, []],
  ['and to V3 as well', [1], 'school-1', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(2, 1), posted(3)], new: [posted(6)] }, []],
  ['while V2 had the newer one too', [1], 'school-1', effects(['new', 'V2'], ['old', 'V2']), { old: [relayed(2, 1)], new: [relayed(6, 5)] }, []],
] // prettier-ignore

test.each(drained)(
  'the check judges a write that V2 received %s, when V3 recorded a newer one',
  (_name, sends, school, recorded, forwards, findings) => {
    // Neither write was answered yet, so their clients have not ordered them.
    const writes = [sent('old', sends, [], { school }), sent('new', 5, [], { school: 'school-1' })]
    const found = kindsOf(writes, recorded, { forwards }).filter((each) => !each.startsWith('unsettled'))
    expect(found).toEqual(findings)
  },
)

function metrics(received: number, ...counts: number[]): string {
  const states = ['confirmed', 'refused', 'unknown', 'parked', 'open', 'notApplied']
  const lines = counts.map(
    (n, at) => `markbridge_journal_records{partner="acme",state="${states[at] ?? ''}"} ${n}`,
  )
  return ['# HELP x', `markbridge_journal_received{partner="acme"} ${received}`, ...lines, ''].join('\n')
}

test.each([
  ['balances', metrics(10, 5, 1, 2, 1, 0, 1), []],
  ['does not balance', metrics(10, 5, 1, 2, 0, 0, 1), ['received 10, but the states add up to 9']],
  ['has records in flight', metrics(10, 5, 1, 2, 0, 1, 1), ['1 records are still in flight']],
  ['is not there', 'markbridge_up 1\n', ['received NaN, but the states add up to NaN', 'NaN records are still in flight']],
])('the check judges a ledger that %s', (_name, text, faults) => {
  expect(checkLedger(text)).toEqual(faults.map((because) => ({ kind: 'ledger', of: 'acme', because })))
}) // prettier-ignore
