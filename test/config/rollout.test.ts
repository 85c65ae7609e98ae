import { describe, expect, it } from 'vitest'

import { parseConfig } from '../../src/config/index.ts'
import { planReload } from '../../src/config/plan-reload.ts'
import { printConfig } from '../../src/config/print.ts'
import { AdapterError } from '../../src/errors.ts'

const upstreams = { v3: { baseUrl: 'http://v3.test' } }
const configOf = (rollout: unknown) => parseConfig({ upstreams, rollout })
const faultsOf = (rollout: unknown): readonly string[] => {
  try {
    configOf(rollout)
    return []
  } catch (error) {
    if (!(error instanceof AdapterError)) throw error
    return error.details.map(({ target, message }) => `${target ?? ''}: ${message}`)
  }
}
const hash = (digit: string): string => digit.repeat(64)
const person = (name: string, role: string, tokenSha256 = hash(String(name.length))): object => ({
  name,
  role,
  tokenSha256,
})

describe('rollout', () => {
  it('lets every user of the system act alone by default', () => {
    expect(configOf(undefined).rollout).toEqual({
      approval: 'one',
      operators: [],
      drainMs: 10_000,
      resendWindowMs: 900_000,
      guards: { action: 'back', coolDownMs: 3_600_000 },
    })
  })

  it.each<[what: string, rollout: object, faults: string[]]>([
    ['two people for two', { approval: 'two', operators: [person('ann', 'operator'), person('bert', 'approver')] }, []],
    ['users of the system for two', { approval: 'two' }, []],
    ['a viewer alone', { operators: [person('ann', 'viewer')] }, []],
    ['a name with a colon', { operators: [person('os:ann', 'operator')] }, ['rollout.operators[0].name: must be 1 to 63 letters, digits, dots, dashes, underscores or @']],
    ['the token itself', { operators: [person('ann', 'operator', 'hush')] }, ['rollout.operators[0].tokenSha256: must be 64 hexadecimal digits: the SHA-256 of the token, never the token itself']],
    ['another role', { operators: [person('ann', 'admin')] }, ['rollout.operators[0].role: must be operator, approver or viewer']],
    ['one name twice', { operators: [person('ann', 'operator'), person('Ann', 'viewer', hash('b'))] }, ['rollout.operators[1].name: is the name of rollout.operators[0] as well']],
    ['one token twice', { operators: [person('ann', 'operator', hash('a')), person('bert', 'viewer', hash('A'))] }, ['rollout.operators[1].tokenSha256: is the token of rollout.operators[0] as well']],
    ['one person for two', { approval: 'two', operators: [person('ann', 'operator'), person('bert', 'viewer')] }, ['rollout.approval: needs an operator who proposes a step and a second person, operator or approver, who approves it']],
    ['nobody who proposes', { approval: 'two', operators: [person('ann', 'approver'), person('bert', 'approver')] }, ['rollout.approval: needs an operator who proposes a step and a second person, operator or approver, who approves it']],
    ['an unknown key', { operator: [] }, ['rollout.operator: is not a key of the configuration; did you mean operators?']],
  ])('%s', (_what, rollout, faults) => {
    expect(faultsOf(rollout)).toEqual(faults)
  }) // prettier-ignore

  it('prints no hash of a token', () => {
    const config = configOf({ operators: [person('ann', 'operator', hash('c'))] })
    expect(printConfig(config)).toMatch(/name: ann\n +tokenSha256: "\[secret\]"/)
    expect(printConfig(config)).not.toContain(hash('c'))
  })

  it('takes operators and the time to drain from a reload, and the rest with the next start', () => {
    const running = configOf({})
    const next = configOf({
      operators: [person('ann', 'operator'), person('bert', 'approver')],
      drainMs: 2_000,
      approval: 'two',
      guards: { action: 'hold' },
    })
    const { config, changes } = planReload(running, next)
    expect(changes.needsRestart).toEqual(['rollout.approval', 'rollout.guards.action'])
    const { operators, drainMs } = next.rollout
    expect(config.rollout).toEqual({ ...running.rollout, operators, drainMs })
  })
})
