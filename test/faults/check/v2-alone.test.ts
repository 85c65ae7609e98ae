import { expect, test } from 'vitest'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import type { Answer, WriteHistory } from '../load/history.ts'
import type { Forward } from '../proxy/forwards.ts'
import { checkHistory } from './check-history.ts'

type Face = EffectEntry['face']

const usual = {
  learner: 'learner-1', event: 'event-1', code: 'code-1', present: true, absent: false, minutesLate: null,
} // prettier-ignore

function write(name: string, sends: readonly number[], answers: readonly [number, Answer][]): WriteHistory {
  const [sentAt = 0] = sends
  return {
    ...{ batch: sentAt, position: 0, sentAt, sends },
    write: { ...usual, name, comment: name, valid: true },
    answers: answers.map(([at, answer]) => ({ at, answer })),
  }
}

const effects = (...rows: [name: string, face: Face][]): EffectEntry[] =>
  rows.map(([name, face], index) => ({ ...usual, seq: index + 1, face, comment: name, externalId: 'id-1' }))

const { learner, event, code } = usual
const created = (comment: string): Answer => ({
  kind: 'created',
  mark: { externalId: 'id-1', learner, event, code, comment },
})
const noOutcome: Answer = { kind: 'noOutcome' }
const relayed = (at: number, sentAt: number): Forward => ({ at, status: 200, face: 'V2', sentAt })
const posted = (at: number): Forward => ({ at, status: 201, face: 'V3' })

function kindsOf(
  writes: WriteHistory[],
  recorded: EffectEntry[],
  forwards: Record<string, Forward[]>,
): string[] {
  const history = { writes, replays: 0, changedReplays: [], missingReplays: [], changedParts: [] }
  const { findings } = checkHistory(history, recorded, { forwards: new Map(Object.entries(forwards)) })
  return findings.map(({ kind, of }) => `${kind} ${of}`)
}

const twice = write('a', [1, 4], [[3, noOutcome], [6, created('a')]]) // prettier-ignore

test.each<[string, EffectEntry[], Forward[], string[]]>([
  ['V2 alone, as often as it was sent', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1), relayed(5, 4)], []],
  ['V2 more often than it was sent', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1)], ['doubled a']],
  ['V2 with one request that was relayed twice', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1), relayed(5, 1)], ['doubled a']],
  ['V2 with a request that no client has sent', effects(['a', 'V2'], ['a', 'V2']), [relayed(2, 1), relayed(5, 3)], ['doubled a']],
  ['both faces', effects(['a', 'V2'], ['a', 'V3']), [relayed(2, 1), posted(5)], ['doubled a']],
  ['V3', effects(['a', 'V3'], ['a', 'V3']), [posted(2), posted(5)], ['doubled a']],
])('a write that was sent twice and recorded twice by %s', (_name, recorded, forwards, kinds) => {
  expect(kindsOf([twice], recorded, { a: forwards })).toEqual(kinds)
}) // prettier-ignore

const old = write('old', [1, 7], [[3, created('old')], [9, created('old')]]) // prettier-ignore
const newer = write('new', [4], [[6, created('new')]])
const again = [relayed(2, 1), relayed(8, 7)]

test.each<[string, EffectEntry[], Record<string, Forward[]>, string[]]>([
  ['by V2 alone, since its client sent it once more', effects(['old', 'V2'], ['new', 'V2'], ['old', 'V2']), { old: again, new: [relayed(5, 4)] }, []],
  ['by V2 alone over one of V3, since its client sent it once more', effects(['old', 'V2'], ['new', 'V3'], ['old', 'V2']), { old: again, new: [posted(5)] }, []],
  ['by V2, though V3 was sent it too', effects(['old', 'V2'], ['new', 'V3'], ['old', 'V2']), { old: [...again, posted(3)], new: [posted(5)] }, ['order old']],
  ['by V2, though only its first request was relayed, late', effects(['new', 'V2'], ['old', 'V2']), { old: [relayed(8, 1)], new: [relayed(5, 4)] }, ['falseAnswer old', 'order old']],
  ['by V3', effects(['new', 'V2'], ['old', 'V3']), { old: [posted(8)], new: [relayed(5, 4)] }, ['falseAnswer old', 'order old']],
])('an older write that is recorded after a newer one %s', (_name, recorded, forwards, kinds) => {
  expect(kindsOf([old, newer], recorded, forwards)).toEqual(kinds)
}) // prettier-ignore

test('a write that its client had to give up needs no final answer, and must not be recorded twice', () => {
  const abandoned = { ...write('a', [1], [[3, noOutcome]]), isAbandoned: true }
  expect(kindsOf([abandoned], [], {})).toEqual([])
  const recorded = effects(['a', 'V2'], ['a', 'V3'])
  expect(kindsOf([abandoned], recorded, { a: [relayed(2, 1), posted(5)] })).toEqual(['doubled a'])
})

const retried = write('retried', [1, 4], [[3, noOutcome], [9, created('retried')]]) // prettier-ignore
const gone = write('gone', [5], [[10, { kind: 'superseded' }]])

test.each<[string, Forward[], string[]]>([
  ['after that one was sent', [relayed(8, 4)], []],
  ['before that one was sent', [relayed(2, 1)], ['falseAnswer gone']],
])('a write that gave way to an older one, which V2 was sent again %s', (_name, forwards, kinds) => {
  expect(kindsOf([retried, gone], effects(['retried', 'V2']), { retried: forwards, gone: [] })).toEqual(kinds)
})
