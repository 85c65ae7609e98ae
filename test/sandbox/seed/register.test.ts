import { expect, test } from 'vitest'
import { createIdentities } from '../../../src/sandbox/identity.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { createCodeTable } from '../../../src/sandbox/seed/code-table.ts'
import { createRegister } from '../../../src/sandbox/seed/register.ts'

const codes = createCodeTable(createIdentities(1))
const markDay = createRegister(codes)
const random = createRandom(1, 'register')
const days = Array.from({ length: 20_000 }, () => markDay(random))

test('minutes stand with a late code and with no other', () => {
  for (const { am, minutesLate } of days) {
    const code = codes.byNumber(am)?.code ?? ''
    if (code === 'L')
      expect([minutesLate !== null && minutesLate > 0, (minutesLate ?? 99) <= 25]).toEqual([true, true])
    else if (code === 'U') expect(minutesLate).toBeGreaterThan(30)
    else expect(minutesLate).toBeNull()
  }
})

test('most days are present, all marks are of real codes, no system code is among them', () => {
  const categories = days.flatMap(({ am, pm }) => [
    codes.byNumber(am)?.category,
    codes.byNumber(pm)?.category,
  ])
  const share = (category: string): number =>
    categories.filter((one) => one === category).length / categories.length
  expect(share('present')).toBeCloseTo(0.953, 2)
  expect(share('absent')).toBeCloseTo(0.047, 2)
  expect(new Set(categories)).toEqual(new Set(['present', 'absent']))
})

test('mornings are not marked with the code of afternoons', () => {
  const text = (number: number): string => codes.byNumber(number)?.code ?? ''
  expect(days.some(({ am, pm }) => text(am) === '\\' || text(pm) === '/')).toBe(false)
})
