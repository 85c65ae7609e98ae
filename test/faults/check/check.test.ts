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
/** Builds effects with ascending numbers, each on the interface that its row names. */
const effects = (...rows: [name: string, face: EffectEntry['face']][]): EffectEntry[] =>
  rows.map(([name, face], index) => effect(name, index + 1, { face }))

/** Builds a write that was sent at these times. */
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

/** Puts `accepts` or `reports` in front of each row, for the name of the test. The last column of a row lists the expected findings. */
const withVerdict = <Row extends readonly unknown[]>(
  rows: readonly Row[],
): [verdict: string, ...row: Row][] =>
  rows.map((row) => {
    const findings = row.at(-1)
    return [Array.isArray(findings) && findings.length === 0 ? 'accepts' : 'reports', ...row]
  })

const none: string[] = []
const rows: [name: string, writes: WriteHistory[], effects: EffectEntry[], findings: string[]][] = [
  ['answered "created" and recorded once', [sent('a', 1, [[2, created('a')]])], [effect('a', 1)], none],
  ['refused and not recorded', [sent('a', 1, [[2, refused]], invalid)], [], none],
  ['answered "created" after answers that were not final', [sent('a', 1, [[2, notApplied], [3, unknown], [4, created('a')]])], [effect('a', 1)], none],
  ['answered "created" twice', [sent('a', 1, [[2, created('a')], [3, created('a')]])], [effect('a', 1)], none],
  ['rejected with its whole batch before and after its final answer', [sent('a', 1, [[2, busy], [3, created('a')], [4, busy]])], [effect('a', 1)], none],
  ['recorded although its batch was always rejected as a whole', [sent('a', 1, [[2, busy]])], [effect('a', 1)], ['unsettled a: last answer busy, recorded 1 times']],
  ['answered "created" but never recorded', [sent('a', 1, [[2, created('a')]])], [], ['lost a: answered created, but never recorded']],
  ['recorded twice', [sent('a', 1, [[2, created('a')]])], [effect('a', 1), effect('a', 4)], ['doubled a: recorded as effects 1, 4']],
  ['recorded but never answered', [sent('a', 1, [])], [effect('a', 1)], ['unsettled a: last answer nothing, recorded 1 times']],
  ['answered "unknown" in the end', [sent('a', 1, [[2, notApplied], [3, unknown]])], [], ['unsettled a: last answer unknown, recorded 0 times']],
  ['answered "not applied" in the end although it was recorded', [sent('a', 1, [[3, notApplied]])], [effect('a', 1)], ['unsettled a: last answer notApplied, recorded 1 times', 'falseAnswer a: answered not applied, but recorded']],
  ['refused although it was recorded', [sent('a', 1, [[2, refused]], invalid)], [effect('a', 1)], ['falseAnswer a: answered 400, but recorded']],
  ['refused for no reason', [sent('a', 1, [[2, refused]])], [], ['falseAnswer a: answered 400, but nothing is wrong with it']],
  ['answered "created" although its code is invalid', [sent('a', 1, [[2, created('a')]], invalid)], [effect('a', 1)], ['falseAnswer a: answered created, but the service knows no such code']],
  ['answered with the record of another write', [sent('a', 1, [[2, created('b')]])], [effect('a', 1)], ['falseAnswer a: answered created with the record of b']],
  ['answered with another code', [sent('a', 1, [[2, created('a', { code: 'code-2' })]])], [effect('a', 1)], ['falseAnswer a: answered created with another code']],
  ['answered with the id of another mark', [sent('a', 1, [[2, created('a', { externalId: 'id-2' })]])], [effect('a', 1)], ['falseAnswer a: answered created with an id that it does not have']],
  ['answered "created" and then "unknown"', [sent('a', 1, [[2, created('a')], [3, unknown]])], [effect('a', 1)], ['falseAnswer a: answered created and then unknown']],
  ['answered "created" between replies without an outcome', [sent('a', 1, [[2, noOutcome], [3, created('a')], [4, noOutcome], [5, created('a')]])], [effect('a', 1)], none],
  ['recorded but never answered with an outcome', [sent('a', 1, [[2, noOutcome]])], [effect('a', 1)], ['unsettled a: last answer noOutcome, recorded 1 times']],
  ['recorded although no client sent it', [], [effect('x', 1)], ['stranger x: recorded, but no client sent it']],
  ['recorded without its name', [], [effect('x', 1, { comment: null })], ['stranger effect 1: recorded, but no client sent it']],
  ['recorded with other values', [sent('a', 1, [[2, created('a')]])], [effect('a', 1, { code: 'code-2', minutesLate: 3 })], ['stranger a: recorded with another code, minutesLate']],
] // prettier-ignore

test.each(withVerdict(rows))(
  'the fault check %s a write that was %s',
  (_verdict, _name, writes, recorded, findings) => {
    expect(check(writes, recorded)).toEqual(findings)
  },
)

const onItsOwn = ['falseAnswer a: answered not applied, then applied without its client']
const times: [name: string, write: WriteHistory, forwards: Forward[], findings: string[]][] = [
  ['answered "not applied", resent and then applied', sent('a', [1, 4], [[2, notApplied], [6, created('a')]]), [{ at: 5, status: 201 }], none],
  ['answered "not applied" and applied before its client resent it', sent('a', [1, 4], [[2, notApplied], [6, created('a')]]), [{ at: 3, status: 201 }], onItsOwn],
  ['answered "not applied" and then perhaps applied by a request without an answer', sent('a', [1, 4], [[2, notApplied], [6, created('a')]]), [{ at: 3, status: undefined }], onItsOwn],
  ['answered "not applied" after V3 rejected it, and applied after a resend', sent('a', [1, 4], [[3, notApplied], [6, created('a')]]), [{ at: 2, status: 503 }, { at: 5, status: 201 }], none],
  ['answered "not applied" although it had been applied', sent('a', [1, 4], [[3, notApplied], [6, created('a')]]), [{ at: 2, status: 201 }], ['falseAnswer a: answered not applied, but the service had it']],
  ['rejected with its whole batch and applied before its client resent it', sent('a', [1, 4], [[2, busy], [6, created('a')]]), [{ at: 3, status: 201 }], onItsOwn],
  ['rejected with its whole batch while an earlier request was in progress', sent('a', [1, 2, 5], [[3, busy], [6, created('a')]]), [{ at: 4, status: 201 }], none],
  ['answered "created" before V3 received it', sent('a', 1, [[2, created('a')]]), [{ at: 3, status: 201 }], ['falseAnswer a: answered created before it was sent to the service']],
] // prettier-ignore

test.each(withVerdict(times))(
  'the fault check %s a write that was %s',
  (_verdict, _name, write, forwards, findings) => {
    expect(check([write], [effect('a', 1)], { forwards: { a: forwards } })).toEqual(findings)
  },
)

const again: [name: string, given: Partial<History>, finding: string][] = [
  ['a final part that returns with other bytes', { changedParts: [{ name: 'a', first: 'same, old', later: 'same, new' }] }, 'changedReply a: its final answer returned with other bytes: "same, old", then "same, new"'],
  ['a finished batch that is answered again with other bytes', { replays: 2, changedReplays: [5] }, 'changedReply batch 5: the finished batch was answered again with other bytes'],
  ['a finished batch that is not answered again', { missingReplays: [5] }, 'changedReply batch 5: the finished batch was not answered again although there were no faults'],
] // prettier-ignore

test.each(again)('the fault check reports %s', (_name, given, finding) => {
  expect(check([], [], given)).toEqual([finding])
})

const alterations: [verdict: 'accepts the reply' | 'reports the reply', echoed: string, comment: string][] = [
  ['accepts the reply', 'w-000001', ' w-000001 '],
  ['accepts the reply', 'w-000001 Jos\u00e9', 'w-000001 Jose\u0301'],
  ['accepts the reply', 'w-000001 a\nb', 'w-000001 a\r\nb'],
  ['accepts the reply', 'w-000001 lo', 'w-000001 long'],
  ['reports the reply', 'w-000001 other', 'w-000001'],
]

test.each(alterations)(
  'the fault check %s of a service that alters values if the reply has the comment %j and the write had the comment %j',
  (verdict, echoed, comment) => {
    const isOwn = verdict === 'accepts the reply'
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
  ['that was sent after the older write was answered "created"', sent('old', 1, [[2, created('old')]]), sent('new', 3, [[4, created('new')]]), late],
  ['that was sent after the older write was answered "unknown"', sent('old', 1, [[2, unknown], [9, created('old')]]), sent('new', 3, [[4, created('new')]]), late],
  ['that follows in the same batch', sent('old', 1, [[2, created('old')]], inBatch(0)), sent('new', 1, [[2, created('new')]], inBatch(1)), late],
  ['that was sent while the older write was in progress', sent('old', 1, [[5, created('old')]]), sent('new', 3, [[4, created('new')]]), none],
  ['that was sent after the older write was answered "not applied"', sent('old', 1, [[2, notApplied], [9, created('old')]]), sent('new', 3, [[4, created('new')]]), none],
  ['of another learner', sent('old', 1, [[2, created('old')]]), sent('new', 3, [[4, created('new', { learner: 'learner-2' })]], { write: { learner: 'learner-2' } }), none],
] // prettier-ignore

test.each(withVerdict(pairs))(
  'the fault check %s an older write that was recorded after a newer write %s',
  (_verdict, _name, older, newer, findings) => {
    const recorded = [effect('new', 1, { learner: newer.write.learner }), effect('old', 2)]
    expect(check([older, newer], recorded)).toEqual(findings)
  },
)

test('the fault check reports an older write that was applied again after a newer write as doubled and out of order', () => {
  const writes = [sent('old', 1, [[2, created('old')]]), sent('new', 3, [[4, created('new')]])]
  const findings = check(writes, [effect('old', 1), effect('new', 2), effect('old', 3)])
  expect(findings).toEqual([
    'doubled old: recorded as effects 1, 3',
    'order old: recorded as 3, after the newer new (2)',
  ])
})

const supersededOnes: [name: string, older: WriteHistory, effects: EffectEntry[], findings: string[]][] = [
  ['after a newer write was recorded', sent('old', 1, [[2, notApplied], [9, superseded]]), [effect('new', 1)], none],
  ['although it was recorded', sent('old', 1, [[2, notApplied], [9, superseded]]), [effect('old', 1), effect('new', 2)], ['falseAnswer old: answered superseded, but recorded']],
  ['although no newer write was recorded', sent('old', 1, [[9, superseded]]), [], ['lost new: answered created, but never recorded', 'falseAnswer old: answered superseded, but no newer one was recorded']],
  ['and later as not applied', sent('old', 1, [[2, superseded], [9, notApplied]]), [effect('new', 1)], ['falseAnswer old: answered superseded and then notApplied']],
  ['because of an older mark', sent('old', 5, [[6, superseded]]), [effect('new', 1)], ['falseAnswer old: answered superseded, but no newer one was recorded']],
] // prettier-ignore

test.each(withVerdict(supersededOnes))(
  'the fault check %s a write that was answered as superseded %s',
  (_verdict, _name, older, recorded, findings) => {
    expect(check([older, sent('new', 3, [[4, created('new')]])], recorded)).toEqual(findings)
  },
)

const conflicts: [name: string, first: EffectEntry[], findings: string[]][] = [
  ['another mark exists', [effect('first', 1)], none],
  ['no other mark exists', [], ['lost first: answered created, but never recorded', 'falseAnswer second: answered 409, but nothing is wrong with it']],
  ['the second mark was recorded', [effect('first', 1), effect('second', 2)], ['falseAnswer second: answered 409, but recorded']],
] // prettier-ignore

test.each(withVerdict(conflicts))(
  'the fault check %s the answer 409 to a second write, for a service with one mark per key, if %s',
  (_verdict, _name, recorded, findings) => {
    const second = sent('second', 3, [[4, { kind: 'refused', status: 409 }]])
    const writes = [sent('first', 1, [[2, created('first')]]), second]
    expect(check(writes, recorded, { oneMark: true })).toEqual(findings)
  },
)

const overtakings: [name: string, older: WriteHistory, newer: WriteHistory, overtaken: number][] = [
  ['later', sent('old', 1, [[2, unknown]]), sent('new', 3, [[4, created('new')]]), 1],
  ['at the same time', sent('old', 2, [[5, unknown]]), sent('new', 1, [[4, created('new')]]), 1],
  ['earlier', sent('old', 5, [[6, unknown]]), sent('new', 1, [[4, created('new')]]), 0],
  ['later and the first write was answered as superseded', sent('old', 1, [[2, unknown], [5, superseded]]), sent('new', 3, [[4, created('new')]]), 1],
  ['later for another session', sent('old', 1, [[2, unknown]]), sent('new', 3, [[4, created('new', { event: 'event-2' })]], { write: { event: 'event-2' } }), 0],
] // prettier-ignore

test.each(overtakings.map((row) => [row[3] === 1 ? 'accepts' : 'reports', ...row] as const))(
  'the fault check %s an unrecorded write with the answer "unknown" if another write was sent %s',
  (_verdict, _name, older, newer, overtaken) => {
    const result = checked([older, newer], [effect('new', 1, { event: newer.write.event })])
    const kinds = result.findings.map(({ kind }) => kind)
    expect([result.overtaken, kinds]).toEqual([overtaken, overtaken === 1 ? [] : ['unsettled']])
  },
)

test('the fault check reports a write that reached the service with the token of another client', () => {
  const write = sent('a', 1, [[4, created('a')]], { token: 'one' })
  const find = (token: string): string[] =>
    kindsOf([write], [effect('a', 1)], { forwards: { a: [{ at: 2, status: 201, token }] } })
  expect([find('one'), find('other')]).toEqual([[], ['lent a']])
})

const relayed = (at: number, sentAt: number): Forward => ({ at, status: 200, face: 'V2', sentAt })
const posted = (at: number): Forward => ({ at, status: 201, face: 'V3' })

const twice = sent('a', [1, 4], [[3, noOutcome], [6, created('a')]]) // prettier-ignore

test.each(withVerdict<[string, EffectEntry[], Forward[], string[]]>([
  ['V2 after two relayed requests', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1), relayed(5, 4)], []],
  ['V2 after only one relayed request', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1)], ['doubled a']],
  ['V2 after one request was relayed twice', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1), relayed(5, 1)], ['doubled a']],
  ['V2 after the relay of a request that no client sent', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1), relayed(5, 3)], ['doubled a']],
  ['V2 and V3, once by each', effects(['a', 'V2'], ['a', 'V3']), [relayed(2, 1), posted(5)], ['doubled a']],
  ['V3 alone', effects(['a', 'V3'], ['a', 'V3']), [posted(2), posted(5)], ['doubled a']],
]))('the fault check %s a write that was sent twice and recorded twice by %s', (_verdict, _name, recorded, forwards, kinds) => {
  expect(kindsOf([twice], recorded, { forwards: { a: forwards } })).toEqual(kinds)
}) // prettier-ignore

const old = sent('old', [1, 7], [[3, created('old')], [9, created('old')]]) // prettier-ignore
const newer = sent('new', 4, [[6, created('new')]])
const resent = [relayed(2, 1), relayed(8, 7)]

test.each(withVerdict<[string, EffectEntry[], Record<string, Forward[]>, string[]]>([
  ['by V2 alone after its client resent it', effects(['old', 'V2'], ['new', 'V2'], ['old', 'V2']), { old: resent, new: [relayed(5, 4)] }, []],
  ['by V2 alone, over a mark of V3, after its client resent it', effects(['old', 'V2'], ['new', 'V3'], ['old', 'V2']), { old: resent, new: [posted(5)] }, []],
  ['by V2 although V3 also received the older write', effects(['old', 'V2'], ['new', 'V3'], ['old', 'V2']), { old: [...resent, posted(3)], new: [posted(5)] }, ['order old']],
  ['by V2 because its first request was relayed late', effects(['new', 'V2'], ['old', 'V2']), { old: [relayed(8, 1)], new: [relayed(5, 4)] }, ['falseAnswer old', 'order old']],
  ['by V3', effects(['new', 'V2'], ['old', 'V3']), { old: [posted(8)], new: [relayed(5, 4)] }, ['falseAnswer old', 'order old']],
]))('the fault check %s an older write that was recorded after a newer write, %s', (_verdict, _name, recorded, forwards, kinds) => {
  expect(kindsOf([old, newer], recorded, { forwards })).toEqual(kinds)
}) // prettier-ignore

test('the fault check accepts a write that its client gave up, unless the service recorded the write twice', () => {
  const abandoned = sent('a', 1, [[3, noOutcome]], { isAbandoned: true })
  expect(kindsOf([abandoned], [])).toEqual([])
  const recorded = effects(['a', 'V2'], ['a', 'V3'])
  expect(kindsOf([abandoned], recorded, { forwards: { a: [relayed(2, 1), posted(5)] } })).toEqual([
    'doubled a',
  ])
})

const retried = sent('retried', [1, 4], [[3, noOutcome], [9, created('retried')]]) // prettier-ignore
const gone = sent('gone', 5, [[10, superseded]])

test.each(
  withVerdict<[string, Forward[], string[]]>([
    ['after the newer write was sent', [relayed(8, 4)], []],
    ['before the newer write was sent', [relayed(2, 1)], ['falseAnswer gone']],
  ]),
)(
  'the fault check %s that an older write superseded a newer write if V2 received the older write %s',
  (_verdict, _name, forwards, kinds) => {
    const given = { forwards: { retried: forwards, gone: [] } }
    expect(kindsOf([retried, gone], effects(['retried', 'V2']), given)).toEqual(kinds)
  },
)

// In each row V2 received the older write, and the client sent the newer write at position 5 of the sequence.
const drained: [name: string, sends: number[], school: string, recorded: EffectEntry[], forwards: { old: Forward[]; new: Forward[] }, findings: string[]][] = [
  ['before a newer write for V3 was sent', [1], 'school-1', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(2, 1)], new: [posted(6)] }, ['order old']],
  ['and recorded before V3 recorded a newer write', [1], 'school-1', effects(['old', 'V2'], ['new', 'V3']), { old: [relayed(2, 1)], new: [posted(6)] }, []],
  ['after a newer write for V3 was sent', [1], 'school-1', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(6, 1)], new: [posted(6)] }, []],
  ['both before and after a newer write for V3 was sent', [1, 7], 'school-1', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(2, 1), relayed(8, 7)], new: [posted(6)] }, []],
  ['for another school than that of a newer write on V3', [1], 'school-2', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(2, 1)], new: [posted(6)] }, []],
  ['and V3 received too', [1], 'school-1', effects(['new', 'V3'], ['old', 'V2']), { old: [relayed(2, 1), posted(3)], new: [posted(6)] }, []],
  ['before V2 also received a newer write', [1], 'school-1', effects(['new', 'V2'], ['old', 'V2']), { old: [relayed(2, 1)], new: [relayed(6, 5)] }, []],
] // prettier-ignore

test.each(withVerdict(drained))(
  'the fault check %s a write that V2 received %s',
  (_verdict, _name, sends, school, recorded, forwards, findings) => {
    // Without answers the writes have no order, so only `checkDrained` can report them.
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

test.each(withVerdict<[string, string, string[]]>([
  ['balances', metrics(10, 5, 1, 2, 1, 0, 1), []],
  ['does not balance', metrics(10, 5, 1, 2, 0, 0, 1), ['received 10, but the states add up to 9']],
  ['has records in flight', metrics(10, 5, 1, 2, 0, 1, 1), ['1 records are still in flight']],
  ['is missing', 'markbridge_up 1\n', ['received NaN, but the states add up to NaN', 'NaN records are still in flight']],
]))('the fault check %s a ledger that %s', (_verdict, _name, text, faults) => {
  expect(checkLedger(text)).toEqual(faults.map((because) => ({ kind: 'ledger', of: 'acme', because })))
}) // prettier-ignore
