import { describe, expect, it } from 'vitest'

import { createSlicing, SLICE_WORK } from '../../src/http/slices.ts'

describe('createSlicing', () => {
  it('runs one slice in each turn of the event loop, in the order in which the slices were requested', async () => {
    const slicing = createSlicing()
    const trace: string[] = []
    let turn = 0
    const count = (): void => {
      turn += 1
      if (turn < 10) setImmediate(count)
    }
    setImmediate(count)
    const one = slicing.open()
    const other = slicing.open()
    const both = Promise.all([
      one.next().then(() => trace.push(`${turn} one`)),
      other.next().then(() => trace.push(`${turn} other`)),
    ])
    slicing.later(() => trace.push(`${turn} later`))
    await both
    await one.next()
    expect(trace).toEqual(['1 one', '2 other', '3 later'])
  })

  it('ends a slice after SLICE_WORK units of work, and then begins the next slice at zero', async () => {
    const slices = createSlicing().open()
    expect(slices.spend(SLICE_WORK - 1)).toBe(false)
    expect(slices.spend(1)).toBe(true)
    await slices.next()
    expect(slices.spend(1)).toBe(false)
  })
})
