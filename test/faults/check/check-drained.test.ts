import { expect, test } from 'vitest'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import type { WriteHistory } from '../load/history.ts'
import type { Forward } from '../proxy/forwards.ts'
import { checkDrained, type Placed } from './check-drained.ts'

const mark = {
  learner: 'learner-1', event: 'event-1', code: 'code-1', present: true, absent: false, minutesLate: null,
} // prettier-ignore

/** A write of a school that was sent at these times, forwarded, and recorded at these places. */
function placed(
  name: string,
  sends: readonly number[],
  forwards: readonly Forward[],
  effects: readonly [seq: number, face: EffectEntry['face']][],
  school = 'school-1',
): Placed {
  const [sentAt = 0] = sends
  const write = { ...mark, name, comment: name, valid: true }
  const own: WriteHistory = { write, school, batch: sentAt, position: 0, sentAt, sends, answers: [] }
  const seqs = effects.map(([seq]) => seq)
  return {
    ...{ own, forwards, first: Math.min(...seqs), last: Math.max(...seqs) },
    effects: effects.map(([seq, face]) => ({ ...mark, seq, face, comment: name, externalId: 'id' })),
  }
}
const onV2 = (at: number): Forward => ({ at, status: 200, face: 'V2' })
const onV3 = (at: number): Forward => ({ at, status: 201, face: 'V3' })
const newer = placed('new', [5], [onV3(6)], [[1, 'V3']])

test.each<[string, Placed, Placed, string[]]>([
  ['before the newer one was sent', placed('old', [1], [onV2(2)], [[2, 'V2']]), newer, ['order old new']],
  ['and recorded first', placed('old', [1], [onV2(2)], [[1, 'V2']]), placed('new', [5], [onV3(6)], [[2, 'V3']]), []],
  ['after the newer one was sent', placed('old', [1], [onV2(6)], [[2, 'V2']]), newer, []],
  ['and again after the newer one was sent', placed('old', [1, 7], [onV2(2), onV2(8)], [[2, 'V2']]), newer, []],
  ['for another school', placed('old', [1], [onV2(2)], [[2, 'V2']], 'school-2'), newer, []],
  ['and to V3 as well', placed('old', [1], [onV2(2), onV3(3)], [[2, 'V2']]), newer, []],
  ['while V2 had the newer one too', placed('old', [1], [onV2(2)], [[2, 'V2']]), placed('new', [5], [onV2(6)], [[1, 'V2']]), []],
])('a write that V2 was sent %s', (_name, older, other, found) => {
  const findings = checkDrained([older, other])
  expect(findings.map(({ kind, of, against }) => `${kind} ${of} ${against ?? ''}`)).toEqual(found)
}) // prettier-ignore
