import { describe, expect, it } from 'vitest'

import { createFailureScope } from '../../src/http/failure-scope.ts'

const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))
const never = (): Promise<never> => new Promise(() => undefined)

describe('a failure scope', () => {
  it('resolves or rejects with the result of its work', async () => {
    const scope = createFailureScope()
    expect(await scope.run(() => Promise.resolve(1))).toBe(1)
    await expect(scope.run(() => Promise.reject(new Error('own')))).rejects.toThrow('own')
  })

  it('rejects only the work whose code reported the failure', async () => {
    const scope = createFailureScope()
    const other = scope.run(async () => {
      await turn()
      await turn()
      return 'other'
    })
    const outer = scope.run(async () => {
      const inner = scope.run(async () => {
        setImmediate(() => scope.fail(new Error('lost')))
        return never()
      })
      return inner.catch((cause: unknown) => `inner ${String(cause)}`)
    })
    expect(await Promise.all([other, outer])).toEqual(['other', 'inner Error: lost'])
  })

  it('ignores a failure that is reported outside of any work, or after the work has ended', async () => {
    const scope = createFailureScope()
    scope.fail(new Error('nobody'))
    const ended = scope.run(() => {
      setImmediate(() => scope.fail(new Error('late')))
      return Promise.resolve('done')
    })
    expect(await ended).toBe('done')
    await turn()
  })
})
