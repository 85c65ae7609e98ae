import { rm, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'

import { describe, expect, it } from 'vitest'

import { encodeKnown, nothingKnown } from '../../src/rollout/live/known-stages.ts'
import { rowsIn, run, serve } from '../rollout/store/open-stores.ts'
import { eachDatabase } from '../support/each-database.ts'
import { answering, operator, rolloutFile, rolloutWith, tokenOf } from './rollout-file.ts'
import { type CliResult, startCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const databases = eachDatabase()
const [[, { newUrl: newSqlite }]] = databases

const me = `os:${userInfo().username}`
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as unknown

const json = ({ stdout }: CliResult): unknown => JSON.parse(stdout)

/** Repeats a step until no client may resend a batch that V2 served unrecorded, because `rollout` refuses the step until then. */
async function later(act: () => Promise<CliResult>): Promise<CliResult> {
  let result: CliResult | undefined
  await expect
    .poll(async () => `${(result = await act()).stdout}${result.stderr}`, { timeout: 10_000 })
    .not.toMatch(/unrecorded/)
  return result ?? act()
}

describe.each(databases)('the command rollout with a journal in %s', (_name, { test }) => {
  test('takes steps forward one by one and steps back at once, and shows the source of each stage', async (url) => {
    answering(await serve(url))
    const rollout = rolloutWith(await rolloutFile(url))
    expect(json(await rollout('show', 'acme', '--json'))).toEqual({
      partner: 'acme',
      stage: 'legacy',
      percent: 0,
      unit: 'school',
      revision: 0,
      source: 'file',
      since: null,
      by: null,
      reason: null,
      advice: { verdict: 'ready', missing: [] },
    })
    expect(await rollout('set', 'acme', 'shadow', '--reason', 'begin')).toMatchObject({
      status: 0,
      stdout: 'acme: legacy -> shadow (revision 1).\n',
    })
    expect(json(await rollout('show', 'acme', '--json'))).toMatchObject({
      stage: 'shadow',
      revision: 1,
      source: 'store',
      since: time,
      by: me,
      reason: 'begin (advice: ready)',
      advice: { verdict: 'inconclusive', missing: expect.arrayContaining([]) as unknown },
    })
    const skipped = await rollout('set', 'acme', 'v3', '--reason', 'too fast')
    expect(skipped).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^markbridge: acme: .*v3.*shadow.*canary/) as unknown,
    })
    const canary = [
      'set',
      'acme',
      'canary',
      '--percent',
      '5',
      '--never',
      'b,a',
      '--reason',
      'first',
      '--despite-advice',
    ] as const
    expect(await later(() => rollout(...canary, '--dry-run'))).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(
        /^acme: shadow -> canary with 5 % of the units on V3 is possible now\. It would wait for instance \d+ to drain\. Nothing has changed\.\n$/,
      ) as unknown,
    })
    expect(
      await Promise.all(
        [
          ['set', 'acme', 'legacy'],
          ['back', 'acme'],
        ].map(async (args) => json(await rollout(...args, '--dry-run', '--json'))),
      ),
    ).toMatchObject(
      Array.from({ length: 2 }, () => ({
        ...{ result: 'possible', waitsFor: [], from: { stage: 'shadow' }, to: { stage: 'legacy' } },
      })),
    )
    expect(json(await later(() => rollout(...canary, '--json')))).toMatchObject({
      result: 'done',
      partner: 'acme',
      from: { stage: 'shadow', percent: 0 },
      to: { stage: 'canary', percent: 5, always: [], never: ['b', 'a'] },
    })
    expect((await rollout('ls')).stdout).toMatch(
      new RegExp(
        `^partner {2}stage {3}share {2}revision {2}source {2}since {21}by\\nacme {5}canary {2}5 % {4}\\d+ +store {3}\\S+Z {2}${me}\\n$`,
      ),
    )
    expect((await rollout('show', 'acme')).stdout).toMatch(
      /^acme: canary with 5 % of the units on V3\nrevision \d+, since \S+Z, by \S+: first \(despite the advice: inconclusive\. .*\)\nnever on V3: b, a\n\nadvice on v3: inconclusive\n {2}- /,
    )
    expect((await rollout('back', 'acme')).stdout).toMatch(
      /^acme: canary with 5 % of the units on V3 -> shadow \(revision \d+\)\.\n$/,
    )
    expect((await rollout('back', 'acme', '--reason', 'all the way')).stdout).toMatch(
      /^acme: shadow -> legacy /,
    )
    expect(await rollout('back', 'acme')).toEqual({
      status: 0,
      stdout: expect.stringMatching(/already legacy\b/) as unknown,
      stderr: '',
    })
    const history = await rollout('history', 'acme')
    expect(
      history.stdout.split('\n').map((line) => line.replace(/^\S+Z +/, '').replaceAll(/ +/g, ' ')),
    ).toEqual([
      'time by partner action from to revision reason',
      `${me} acme propose legacy shadow 1 begin (advice: ready)`,
      `${me} acme commit legacy shadow 1 begin (advice: ready)`,
      expect.stringMatching(
        / propose shadow canary 5 %, 2 never \d+ first \(despite the advice: inconclusive\. .*\)$/,
      ),
      expect.stringMatching(
        / commit shadow canary 5 %, 2 never \d+ first \(despite the advice: inconclusive\. .*\)$/,
      ),
      expect.stringMatching(/ back canary 5 %, 2 never shadow \d+$/),
      expect.stringMatching(/ back shadow legacy \d+ all the way$/),
      '',
    ])
    expect(json(await rollout('history', '--limit', '1', '--json'))).toMatchObject({
      entries: [{ entry: 6, at: time, by: me, action: 'back', to: { stage: 'legacy', percent: 0 } }],
    })
    expect(await rollout('verify')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^The audit trail is one chain of 6 entries\./) as unknown }) // prettier-ignore
  })

  test('withdraws a step if writes in progress do not end in time, and names the instances with such writes', async (url) => {
    const busy = await serve(url)
    answering(busy, () => 1)
    const silent = await serve(url)
    const rollout = rolloutWith(await rolloutFile(url))
    const text = await rollout('set', 'acme', 'shadow', '--reason', 'begin')
    expect(text.status).toBe(1)
    expect(text.stderr).toContain(
      `waiting for 2 of 2 instances to drain: instance ${busy.instance()} (1 write), instance ${silent.instance()} (no answer yet)\n`,
    )
    expect(text.stderr).toMatch(
      new RegExp(
        `acme: legacy -> shadow was withdrawn: writes did not end in time\\. Nothing has changed\\.\\n {2}instance ${busy.instance()} \\(\\S+, process ${process.pid}\\): 1 write under way\\n {2}instance ${silent.instance()} .*: has not acknowledged`,
      ),
    )
    const document = await rollout('set', 'acme', 'shadow', '--reason', 'begin', '--json')
    expect(json(document)).toMatchObject({
      result: 'undrained',
      instances: [
        { instance: busy.instance(), pid: process.pid, writes: 1 },
        { instance: silent.instance(), writes: null },
      ],
    })
    expect(json(await rollout('show', 'acme', '--json'))).toMatchObject({ stage: 'legacy', source: 'file' })
    expect((await rollout('history', 'acme')).stdout).toMatch(
      / withdraw +legacy +shadow +\d+ +not drained in time: instance \d+ \(1 write\), instance \d+ \(no answer\)\n$/,
    )
  })

  test('waits for the approval of another operator if rollout.approval is two', async (url) => {
    answering(await serve(url))
    const operators = [operator('ann', 'operator'), operator('bert', 'approver'), operator('cleo', 'viewer')]
    const config = await rolloutFile(url, {
      rollout: { approval: 'two', operators },
      partner: { stage: 'v3' },
    })
    const [ann, bert, cleo] = ['ann', 'bert', 'cleo'].map((who) => rolloutWith(config, tokenOf(who)))
    const anonymous = rolloutWith(config)
    expect((await anonymous('ls')).stdout).toContain('has no effect: rollout.approval is two')
    expect(await anonymous('set', 'acme', 'shadow', '--reason', 'x')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('Set MARKBRIDGE_OPERATOR_TOKEN') as unknown,
    })
    expect(await rolloutWith(config, tokenOf('dora'))('ls')).toMatchObject({ status: 1, stdout: '' })
    expect((await cleo?.('back', 'acme'))?.stderr).toContain('cleo has the role viewer')
    expect((await bert?.('set', 'acme', 'shadow', '--reason', 'x'))?.stderr).toContain('role operator')
    expect(await bert?.('approve', 'acme')).toMatchObject({ status: 1, stderr: expect.stringMatching(/^markbridge: acme: no step waits for an approval\. /) as unknown }) // prettier-ignore

    const proposed = await ann?.('set', 'acme', 'shadow', '--reason', 'begin', '--json')
    expect([proposed?.status, json(proposed ?? expect.fail())]).toEqual([
      4,
      expect.objectContaining({ result: 'needsApproval', revision: 1 }),
    ])
    expect(json((await ann?.('show', 'acme', '--json')) ?? expect.fail())).toMatchObject({
      stage: 'legacy',
      pending: { stage: 'shadow', percent: 0, revision: 1, by: 'ann', needsApproval: true, expires: time },
      advice: { verdict: 'not yet' },
    })
    expect(await ann?.('approve', 'acme', '--json')).toMatchObject({ status: 1 })
    expect((await cleo?.('approve', 'acme'))?.status).toBe(1)
    expect(await bert?.('approve', 'acme', '--reason', 'seen')).toMatchObject({
      status: 0,
      stdout: 'acme: legacy -> shadow (revision 1).\n',
    })
    expect(json((await cleo?.('history', '--json')) ?? expect.fail())).toMatchObject({
      entries: [
        { action: 'propose', by: 'ann' },
        { action: 'approve', by: 'bert', reason: 'seen (advice: ready)' },
        { action: 'commit', by: 'ann' },
      ],
    })
    expect(await bert?.('back', 'acme')).toMatchObject({ status: 0 })
  })
})

describe('the command rollout', () => {
  it('withdraws a step on Ctrl+C while the step waits for instances', async () => {
    const url = await newSqlite()
    const { instance } = await serve(url)
    const config = await rolloutFile(url)
    const command = startCli(['rollout', 'set', 'acme', 'shadow', '--reason', 'begin', '--config', config])
    await command.untilErrors(/waiting for 1 of 1 instance to drain/)
    command.stop('SIGINT').catch(() => undefined)
    expect(await command.ended()).toEqual({
      status: 1,
      stdout: '',
      stderr:
        `markbridge: waiting for 1 of 1 instance to drain: instance ${instance()} (no answer yet)\n` +
        'markbridge: acme: legacy -> shadow was withdrawn. Nothing has changed.\n',
    })
    expect((await rolloutWith(config)('history')).stdout).toMatch(
      / withdraw +legacy +shadow +1 +interrupted\n$/,
    )
  })

  it('refuses canary, and prints the time to wait, while clients may resend batches that V2 served unrecorded', async () => {
    const url = await newSqlite()
    await serve(url).then(answering)
    const rollout = rolloutWith(await rolloutFile(url, { rollout: { resendWindowMs: 900_000 } }))
    await rollout('set', 'acme', 'shadow', '--reason', 'begin')
    const canary = [
      'set',
      'acme',
      'canary',
      '--percent',
      '5',
      '--reason',
      'first',
      '--despite-advice',
    ] as const
    expect((await rollout(...canary)).stderr).toMatch(
      /^markbridge: acme: shadow -> canary with 5 % of the units on V3 is refused: .* Try again in 1[45] min \d+ s, at \S+Z\.\n$/,
    )
    const document = await rollout(...canary, '--json')
    expect([document.status, json(document)]).toEqual([
      1,
      expect.objectContaining({ result: 'early', until: time, leftMs: expect.any(Number) as unknown }),
    ])
  })

  it('keeps percentage and lists while the partner is at canary, and uses the percentage in the file when the partner enters canary again', async () => {
    const url = await newSqlite()
    await (await serve(url)).journal.close()
    const canary = { percent: 2, always: ['a'] }
    const rollout = rolloutWith(await rolloutFile(url, { partner: { stage: 'shadow', canary } }))
    const shown = async (): Promise<unknown> =>
      (json(await rollout('history', '--limit', '1', '--json')) as { entries: { to: unknown }[] }).entries[0]
        ?.to
    await rollout('set', 'acme', 'canary', '--reason', 'x', '--despite-advice')
    expect(await shown()).toEqual({ stage: 'canary', percent: 2, always: ['a'], never: [] })
    await later(() =>
      rollout('set', 'acme', 'canary', '--percent', '50', '--reason', 'x', '--despite-advice'),
    )
    await rollout('set', 'acme', 'canary', '--never', 'b', '--reason', 'x', '--despite-advice')
    expect(await shown()).toEqual({ stage: 'canary', percent: 50, always: ['a'], never: ['b'] })
    expect(
      (await rollout('set', 'acme', 'canary', '--percent', '50', '--reason', 'x', '--despite-advice')).stdout,
    ).toContain('already canary with 50 %')
    await rollout('back', 'acme')
    expect((await rollout('show', 'acme')).stdout).toContain(
      '\nat canary always on V3: a\nat canary never on V3: b\n',
    )
    await later(() => rollout('set', 'acme', 'canary', '--always', '', '--reason', 'x', '--despite-advice'))
    expect(await shown()).toEqual({ stage: 'canary', percent: 2, always: [], never: ['b'] })
  })

  it('reports a broken audit trail with every command, refuses steps forward, and still allows steps back', async () => {
    const url = await newSqlite()
    const { journal } = await serve(url)
    const rollout = rolloutWith(await rolloutFile(url, { partner: { stage: 'v3' } }))
    await rollout('back', 'acme', '--reason', 'slow')
    await rollout('back', 'acme')
    const { db } = journal.database
    await run(db, `update rollout_audit set content = replace(content, 'slow', 'fast') where entry = 1`)
    const stderr = 'markbridge: the audit trail of stages is broken at entry 1: entry 1 was altered.\n'
    expect(await rollout('ls')).toMatchObject({ status: 0, stderr })
    expect(await rollout('show', 'acme')).toMatchObject({ status: 0, stderr })
    expect(json(await rollout('advise', 'acme', '--json'))).toMatchObject({
      verdict: 'not yet',
      missing: expect.arrayContaining([expect.stringContaining('broken at entry 1: entry 1 was altered')]) as unknown, // prettier-ignore
    })
    const forward = await rollout('set', 'acme', 'shadow', '--reason', 'x')
    expect([forward.status, forward.stderr]).toEqual([1, expect.stringContaining('broken at entry 1')])
    expect(await rollout('back', 'acme')).toMatchObject({ status: 0 })
    expect(await rollout('verify')).toEqual({
      status: 1,
      stdout: expect.stringContaining('broken at entry 1: entry 1 was altered') as unknown,
      stderr: '',
    })
    expect(json(await rollout('verify', '--json'))).toMatchObject({ broken: { entry: 1 } })
  })

  it('shows the stages of the configuration file, and changes no stage, if there is no journal', async () => {
    const rollout = rolloutWith(await rolloutFile('none'))
    expect(await rollout('ls')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/\nacme +legacy +0 % +file\n$/) as unknown,
      stderr: expect.stringContaining('journal.url is none') as unknown,
    })
    expect(json(await rollout('show', 'acme', '--json'))).toMatchObject({ stage: 'legacy', source: 'file' })
    for (const args of [['set', 'acme', 'v3', '--reason', 'x'], ['back', 'acme'], ['history'], ['verify']]) {
      expect(await rollout(...args)).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('partners[].stage') as unknown,
      })
    }
  })

  it.each([
    [['show', 'other'], 2, 'The configuration has no partner other. Nothing was done. Name one of its partners (acme)'],
    [['set', 'acme', 'canari', '--reason', 'x'], 2, 'Allowed choices are legacy, shadow, canary, v3, complete.'],
    [['set', 'acme', 'shadow'], 2, 'no reason for the audit trail'],
    [['set', 'acme', 'shadow', '--dry-run'], 0, ''],
    [['set', 'acme', 'shadow', '--reason', ' '], 2, 'The reason must have 1 to 500 characters.'],
    [['set', 'acme', 'canary', '--percent', '101', '--reason', 'x'], 2, 'must be a number from 0 to 100.'],
    [['set', 'acme', 'canary', '--always', 'a,,b', '--reason', 'x'], 2, 'Units are names'],
    [['set', 'acme', 'shadow', '--percent', '5', '--reason', 'x'], 2, 'stage canary'],
    [['ls', '--journal', 'sqlite:/nowhere/x.db'], 1, 'There is no journal at sqlite:/nowhere/x.db: the file does not exist. Nothing has changed. Start serve once, which creates the journal.\n'],
    [['back', 'acme', '--journal', 'sqlite:/nowhere/x.db'], 1, 'Start serve once, which creates the journal.\n'],
  ])('with the arguments %j exits with status %i and prints: %s', async (args, status, text) => {
    const url = await newSqlite()
    await serve(url)
    const result = await rolloutWith(await rolloutFile(url))(...args)
    expect(result.status).toBe(status)
    expect(result.stderr).toContain(text)
  }) // prettier-ignore

  it('works without the secrets of a partner, and prints how to let V2 serve if the journal is lost', async () => {
    const url = await newSqlite()
    await (await serve(url)).journal.close()
    const clientSecret = { env: 'MARKBRIDGE_TEST_NEVER_SET' }
    const oauth = { tokenUrl: 'https://login.example/token', clientId: 'client', scope: 'api', clientSecret }
    const auth = { mode: 'clientCredentials', ...oauth }
    const v3 = { auth, subscriptionKey: { file: '/nowhere/key' } }
    const rollout = rolloutWith(await rolloutFile(url, { partner: { clients: 'open', v3 } }))
    for (const args of [
      ['set', 'acme', 'shadow', '--reason', 'x'],
      ['show', 'acme'],
      ['advise', 'acme'],
      ['back', 'acme'],
      ['history'],
      ['verify'],
    ])
      expect([args, (await rollout(...args)).status]).toEqual([args, 0])
    await rm(url.slice('sqlite:'.length))
    const back = await rollout('back', 'acme')
    expect([back.status, back.stdout]).toEqual([1, ''])
    expect(back.stderr).toContain('started with journal.url: none and stage: legacy lets V2 serve acme')
  })

  it('reports an audit trail that is older than the trail in the stage file, and still allows steps back', async () => {
    const url = await newSqlite()
    const serving = await serve(url)
    answering(serving)
    const rollout = rolloutWith(await rolloutFile(url))
    expect((await rollout('set', 'acme', 'shadow', '--reason', 'x')).status).toBe(0)
    expect((await rollout('verify')).status).toBe(0)
    // Writes a stage file that records nine entries of the audit trail, more than the journal has.
    const trail = { entries: 9, hash: 'a' }
    const view = { partners: new Map(), begins: new Map(), trail, isTrailContinued: true }
    const kept = { ...view, asked: undefined, instance: undefined }
    await writeFile(`${url.slice('sqlite:'.length)}.stages`, encodeKnown({ ...nothingKnown, view: kept }))
    const fault = 'broken at entry 3: the trail ends after entry 2, but this machine has seen 9 entries.'
    const verified = await rollout('verify')
    expect([verified.status, verified.stdout]).toEqual([1, expect.stringContaining(fault)])
    expect((await rollout('ls')).stderr).toContain(fault)
    const forward = ['set', 'acme', 'canary', '--percent', '1', '--reason', 'x']
    expect((await later(() => rollout(...forward))).stderr).toContain(fault)
    expect(await rollout('back', 'acme')).toMatchObject({ status: 0 })
  })

  it('uses the partner with the id default if there is no configuration file', async () => {
    const url = await newSqlite()
    await serve(url)
    const result = await runCommand(['rollout', 'back', 'default', '--journal', url])
    expect(result).toEqual({ status: 0, stdout: 'default: v3 -> shadow (revision 1).\n', stderr: '' })
  })

  it('does not encrypt the secret of the journal with a key that the instances have not loaded', async () => {
    const url = await newSqlite()
    const { journal } = await serve(url)
    const keys = [{ id: 'k1', key: { env: 'TEST_JOURNAL_KEY' } }]
    const keyed = rolloutWith(await rolloutFile(url, { partner: { stage: 'v3' }, journal: { keys } }), {
      TEST_JOURNAL_KEY: '0a'.repeat(32),
    })
    expect(await keyed('back', 'acme')).toMatchObject({ status: 0 })
    const meta = await rowsIn<{ name: string }>(journal.database.db, 'journal_meta')
    expect(meta.map(({ name }) => name)).not.toContain('secret')
  })
})
