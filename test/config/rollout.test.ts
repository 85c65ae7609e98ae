import { describe, expect, it } from 'vitest'

import { parseConfig, Secret, warningsOf } from '../../src/config/index.ts'
import { planReload } from '../../src/config/changes.ts'
import { printConfig } from '../../src/config/yaml.ts'
import { faultsOf, upstreams } from './faults.ts'

const configOf = (rollout: unknown) => parseConfig({ upstreams, rollout })
const hash = (digit: string): string => digit.repeat(64)
const person = (name: string, role: string, tokenSha256 = hash(String(name.length))): object => ({
  name,
  role,
  tokenSha256,
})

describe('the rollout section of the configuration', () => {
  it.each<[what: string, rollout: object, faults: string[]]>([
    ['accepts an operator and an approver for two approvals', { approval: 'two', operators: [person('ann', 'operator'), person('bert', 'approver')] }, []],
    ['accepts two approvals without a list of operators', { approval: 'two' }, []],
    ['accepts a viewer alone', { operators: [person('ann', 'viewer')] }, []],
    ['refuses a name with a colon', { operators: [person('os:ann', 'operator')] }, ['rollout.operators[0].name: must be 1 to 63 letters, digits, dots, dashes, underscores or @']],
    ['refuses the name of the guards', { operators: [person('Guard', 'operator')] }, ['rollout.operators[0].name: is reserved: Markbridge uses this name for its own entries in the audit trail']],
    ['refuses the token in place of its hash', { operators: [person('ann', 'operator', 'hush')] }, ['rollout.operators[0].tokenSha256: must be 64 hexadecimal digits: the SHA-256 of the token, never the token itself']],
    ['refuses an unknown role', { operators: [person('ann', 'admin')] }, ['rollout.operators[0].role: Invalid option: expected one of "operator"|"approver"|"viewer"']],
    ['refuses a repeated operator name', { operators: [person('ann', 'operator'), person('Ann', 'viewer', hash('b'))] }, ['rollout.operators[1].name: is already the name of rollout.operators[0]']],
    ['refuses a repeated token', { operators: [person('ann', 'operator', hash('a')), person('bert', 'viewer', hash('A'))] }, ['rollout.operators[1].tokenSha256: is already the token of rollout.operators[0]']],
    ['refuses one person for two approvals', { approval: 'two', operators: [person('ann', 'operator'), person('bert', 'viewer')] }, ['rollout.approval: requires an operator who proposes a step, and a second operator or an approver who approves the step']],
    ['refuses approvers without an operator who proposes', { approval: 'two', operators: [person('ann', 'approver'), person('bert', 'approver')] }, ['rollout.approval: requires an operator who proposes a step, and a second operator or an approver who approves the step']],
    ['refuses an unknown key', { operator: [] }, ['rollout.operator: is not a key of the configuration; did you mean operators?']],
  ])('%s', (_what, rollout, faults) => {
    expect(faultsOf({ upstreams, rollout })).toEqual(faults)
  }) // prettier-ignore

  it('never prints the hash of a token', () => {
    const config = configOf({ operators: [person('ann', 'operator', hash('c'))] })
    expect(printConfig(config)).toMatch(/name: ann\n +tokenSha256: "\[secret\]"/)
    expect(printConfig(config)).not.toContain(hash('c'))
  })

  it('applies a changed list of operators on a reload, but a change of any other key only on a restart', () => {
    const running = configOf({})
    const next = configOf({
      operators: [person('ann', 'operator'), person('bert', 'approver')],
      approval: 'two',
    })
    const { config, changes } = planReload(running, next)
    expect(changes.needsRestart).toEqual(['rollout.approval'])
    expect(config.rollout).toEqual({ ...running.rollout, operators: next.rollout.operators })
  })
})

describe('the check of partners[].stage in the configuration', () => {
  const v2 = { baseUrl: 'http://v2.test' }
  const partner = (members: object): object => ({ id: 'acme', match: { any: true }, ...members })
  const partnerFaults = (members: object, sections: object = {}): readonly string[] =>
    faultsOf({ upstreams, partners: [partner(members)], ...sections })
  const noV2 = 'requires an address of V2. Set upstreams.v2.baseUrl or partners[0].v2.baseUrl'
  const noJournal = 'requires a journal. With journal.url: none, the stage must be legacy, v3 or complete'
  const none = { upstreams: { ...upstreams, v2 }, journal: { url: 'none' } }

  it.each<[what: string, members: object, sections: object, faults: string[]]>([
    ['refuses legacy if V2 has no address', { stage: 'legacy' }, {}, [`partners[0].stage: ${noV2}`]],
    ['accepts v3 if V2 has no address', { stage: 'v3' }, {}, []],
    ['accepts complete if V2 has no address', { stage: 'complete' }, {}, []],
    ['accepts canary if only the partner has an address of V2', { stage: 'canary', v2 }, {}, []],
    ['accepts canary if upstreams.v2 has an address', { stage: 'canary' }, { upstreams: { ...upstreams, v2 } }, []],
    ['accepts legacy without a journal', { stage: 'legacy' }, none, []],
    ['refuses shadow without a journal', { stage: 'shadow' }, none, [`partners[0].stage: ${noJournal}`]],
    ['refuses canary if a secret turns the journal off', { stage: 'canary' }, { ...none, journal: { url: new Secret('none') } }, [`partners[0].stage: ${noJournal}`]],
  ])('%s', (_what, members, sections, faults) => {
    expect(partnerFaults(members, sections)).toEqual(faults)
  }) // prettier-ignore

  it('refuses two approvals if there is no journal', () => {
    expect(partnerFaults({}, { ...none, rollout: { approval: 'two' } })).toEqual([
      'rollout.approval: requires a journal. With journal.url: none, the stages come from this file',
    ])
  })

  const journal = { keys: [{ id: 'k1', key: new Secret('0c'.repeat(32)) }] }
  const warningsFor = (members: object, rollout: object = {}): readonly string[] =>
    warningsOf(
      parseConfig({ upstreams: { ...upstreams, v2 }, journal, rollout, partners: [partner(members)] }),
      1,
      '2026-11-22',
    )

  const named = { canary: { header: 'X-School' } }

  it('warns if two approvals are required and the stage is not legacy', () => {
    expect(warningsFor({ stage: 'legacy', ...named }, { approval: 'two' })).toEqual([])
    expect(warningsFor({ stage: 'v3' }, { approval: 'two' })).toEqual([
      expect.stringMatching(/^rollout\.approval is two.*begins at legacy.*: acme \(v3\)\. /),
    ])
  })

  it('warns at legacy, shadow and canary, but not at v3, if canary.header is not set', () => {
    const oneUnit = [
      expect.stringMatching(/^partner acme has no canary\.header\. .*share a subscription key/),
    ]
    for (const stage of ['legacy', 'shadow', 'canary']) expect(warningsFor({ stage })).toEqual(oneUnit)
    expect(warningsFor({ stage: 'shadow', canary: { percent: 5 } })).toEqual(oneUnit)
    expect(warningsFor({ stage: 'canary', ...named })).toEqual([])
    expect(warningsFor({ stage: 'v3' })).toEqual([])
  })
})
