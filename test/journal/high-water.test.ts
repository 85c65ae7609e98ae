import { expect, test } from 'vitest'

import { createHighWater } from '../../src/journal/high-water.ts'

test('a process that has noticed lost commits goes on noticing, although another one counts its slot up again', () => {
  const mark = createHighWater({ identity: 'journal', commits: new Map() }, undefined)
  const find = (commits: number) => () => mark.check({ identity: 'journal', commits, before: commits }, 3)
  find(1)()
  mark.reached(3, 7)
  find(8)()
  expect(find(5)).toThrow('it went back by 3 commit(s)')
  expect(find(20)).toThrow('it went back by 3 commit(s)')
})

test('a process under another number knows its last slot and the new one', () => {
  const mark = createHighWater({ identity: 'journal', commits: new Map([[4, 9]]) }, undefined)
  mark.reached(3, 7)
  mark.check({ identity: 'journal', commits: 10, before: 7 }, 4)
  expect(() => mark.check({ identity: 'journal', commits: 8, before: 7 }, 4)).toThrow('went back by 2')
})
