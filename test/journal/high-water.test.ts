import { expect, test } from 'vitest'

import { createHighWater, markerOf } from '../../src/journal/high-water.ts'

test('an instance detects its own lost commits even if another instance has committed more since', () => {
  const mark = createHighWater(
    { mark: { identity: 'journal', commits: new Map() }, process: 'own' },
    undefined,
  )
  const find = (commits: number) => () =>
    mark.check({ identity: 'journal', commits, before: { commits, marker: null } }, 3)
  find(1)()
  mark.reached(3, 7)
  find(8)()
  expect(find(5)).toThrow('it lost 3 commit(s)')
  expect(find(20)).toThrow('it lost 3 commit(s)')
})

test('the commit count of a process includes its commits under a previous instance number', () => {
  const mark = createHighWater(
    { mark: { identity: 'journal', commits: new Map([[4, 9]]) }, process: 'own' },
    undefined,
  )
  mark.reached(3, 7)
  mark.check({ identity: 'journal', commits: 10, before: { commits: 7, marker: markerOf(3, 'own', 7) } }, 4)
  expect(() =>
    mark.check({ identity: 'journal', commits: 8, before: { commits: 7, marker: markerOf(3, 'own', 7) } }, 4),
  ).toThrow('lost 2 commit')
})

test('the commit count of a process shows that another process was given its previous instance number', () => {
  const open = () => {
    const mark = createHighWater(
      { mark: { identity: 'journal', commits: new Map() }, process: 'own' },
      undefined,
    )
    mark.reached(3, 7)
    return (marker: string) => () =>
      mark.check({ identity: 'journal', commits: 1, before: { commits: 90, marker } }, 4)
  }
  // A later instance with another number may use the same slot.
  open()(markerOf(19, 'other', 90))()
  open()(markerOf(3, 'own', 90))()
  expect(open()(markerOf(3, 'other', 90))).toThrow('another process has used the instance number')
})
