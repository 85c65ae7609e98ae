import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'

import { ownIdentity } from '../../src/journal/index.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { goBack } from '../../src/rollout/guards/live-guards.ts'
import { createRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { canary, changeTo, legacy, serve, type Serving } from '../rollout/store/open-stores.ts'
import { answering, operator, rolloutFile, rolloutWith, tokenOf } from './rollout-file.ts'

const newSqlite = async (): Promise<string> => `sqlite:${await makeFolder()}/journal.db`

const toCanary = ['set', 'acme', 'canary', '--percent', '5', '--reason', 'first', '--despite-advice'] as const

/** Adds an instance on another machine that can no longer renew its lease, and returns its number. */
async function addCutOff({ journal }: Serving): Promise<number> {
  const { id } = await journal.database.db
    .insertInto('journal_instances')
    .values({ ...ownIdentity(), host: 'far', pid: 77, lease_until: Date.now() - 60_000, lease_ms: 10_000 })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

describe('an instance that does not renew its lease', () => {
  it('blocks canary until an operator dismisses it, and is named by rollout set, show and advise', async () => {
    const url = await newSqlite()
    const serving = await serve(url)
    answering(serving)
    const lost = await addCutOff(serving)
    const operators = [operator('ann', 'operator'), operator('bert', 'approver')]
    const config = await rolloutFile(url, { rollout: { operators } })
    const [ann, bert] = [rolloutWith(config, tokenOf('ann')), rolloutWith(config, tokenOf('bert'))]
    expect(await ann('set', 'acme', 'shadow', '--reason', 'begin')).toMatchObject({ status: 0 })
    expect((await ann(...toCanary)).stderr).toMatch(
      new RegExp(
        `is refused: instances were lost\\. .*\\n  instance ${lost} \\(far, process 77\\): its lease ended at \\S+Z\\n.* markbridge rollout dismiss --config \\S+ <instance>`,
      ),
    )
    const document = JSON.parse((await ann(...toCanary, '--json')).stdout) as object
    expect(document).toMatchObject({ result: 'lost', instances: [{ instance: lost, host: 'far', pid: 77 }] })
    for (const command of ['show', 'advise'])
      expect((await ann(command, 'acme')).stdout).toContain(
        `Instance ${lost} (far, process 77) was lost and may still send writes to V2`,
      )
    const dismiss = ['dismiss', String(lost), '--reason', 'its machine was switched off'] as const
    expect((await bert(...dismiss)).status).toBe(1)
    expect(await ann(...dismiss)).toMatchObject({ status: 0, stdout: expect.stringMatching(/is dismissed/) as unknown }) // prettier-ignore
    expect(JSON.parse((await ann(...dismiss, '--json')).stdout)).toMatchObject({ result: 'unknown' })
    expect((await ann('dismiss', String(serving.instance()), '--reason', 'x')).stderr).toMatch(
      /holds its lease/,
    )
    await expect.poll(async () => (await ann(...toCanary)).stdout).toMatch(/-> canary/)
    expect((await ann('history')).stdout).toMatch(
      / ann +dismiss +instance \d+ \(far, process 77\) is off: its machine was switched off\n/,
    )
  })
})

describe('the cool-down of a guard', () => {
  const finding = 'V3 does worse than V2.'
  const acted = async (rollout: object = {}, agoMs = 0) => {
    const url = await newSqlite()
    const serving = await serve(url)
    answering(serving)
    const nowMs = () => sql<number>`${Date.now() - agoMs}`
    const store = createRolloutStore({ ...serving.journal.database, nowMs })
    await store.apply(changeTo(canary(5), { from: { ...legacy, stage: 'v3' } }), 'set')
    await goBack(store, { partner: 'acme', revision: 1, reason: finding })
    return { store, config: await rolloutFile(url, { rollout: { resendWindowMs: 1_000, ...rollout } }) }
  }
  const further = [
    'set',
    'acme',
    'canary',
    '--percent',
    '20',
    '--reason',
    'more',
    '--despite-advice',
  ] as const

  it('refuses a step forward without --despite-hold, and prints the finding of the guard', async () => {
    const { store, config } = await acted()
    const rollout = rolloutWith(config)
    expect(await rollout(...further)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /is refused: a guard .* before \S+Z\. V3 does worse than V2\. .*--despite-hold/,
      ) as unknown,
    })
    expect(JSON.parse((await rollout(...further, '--json')).stdout)).toMatchObject({
      result: 'held',
      until: expect.any(String) as unknown,
      finding,
    })
    expect((await rollout('advise', 'acme')).stdout).toContain(`A guard acted: ${finding}`)
    // The cool-down does not block a step back.
    expect(await rollout('back', 'acme')).toMatchObject({ status: 0 })
    expect(await rollout('set', 'acme', 'shadow', '--reason', 'x', '--despite-hold')).toMatchObject({
      status: 0,
    })
    await expect.poll(() => rollout(...further, '--despite-hold')).toMatchObject({ status: 0 })
    expect((await store.history({ partner: 'acme' })).at(-1)).toMatchObject({
      action: 'commit',
      reason: expect.stringMatching(/^more \(despite the guard; despite the advice: .*\)$/) as unknown,
    })
    // The cool-down does not block taking a school off V3 either.
    expect(await rollout('set', 'acme', 'canary', '--never', 'school-7', '--reason', 'off')).toMatchObject({ status: 0 }) // prettier-ignore
  })

  it('mentions --never and the earliest time in its refusal of a step only if the step leads to V3', async () => {
    const rollout = rolloutWith((await acted({ resendWindowMs: 900_000 })).config)
    expect((await rollout('set', 'acme', 'canary', '--reason', 'x', '--despite-advice')).stderr).toContain(
      'a canary of 0 % serves no unit',
    )
    const both = /--never\. .*--despite-hold\. Even then the step is refused before \S+Z/
    expect((await rollout(...further.slice(0, 5), '--dry-run')).stderr).toMatch(both)
    await rollout('back', 'acme')
    expect((await rollout('set', 'acme', 'shadow', '--dry-run')).stderr).toMatch(
      /Correct the cause first\. [^.]*--despite-hold\.\n$/,
    )
    expect((await rollout('history', 'nobody')).stdout).toBe('The audit trail has no entry for nobody.\n')
  })

  it('ends after an hour, and prevents approvals until then', async () => {
    const later = rolloutWith((await acted({}, 3_600_000)).config)
    await expect.poll(() => later(...further)).toMatchObject({ status: 0 })
    const operators = [operator('ann', 'operator'), operator('bert', 'approver')]
    const two = (await acted({ approval: 'two', operators })).config
    const [ann, bert] = [rolloutWith(two, tokenOf('ann')), rolloutWith(two, tokenOf('bert'))]
    const propose = async (): Promise<string> => (await ann(...further, '--despite-hold')).stderr
    await expect.poll(propose).toMatch(/approve it within 24 h/)
    expect((await bert('approve', 'acme')).stderr).toMatch(/a guard took the partner back/)
    const refused = await bert('approve', 'acme', '--despite-hold', '--json')
    expect(JSON.parse(refused.stdout)).toMatchObject({ result: 'notReady' })
    const despite = ['--despite-hold', '--despite-advice']
    expect(await bert('approve', 'acme', ...despite)).toMatchObject({ status: 0 })
  })
})
