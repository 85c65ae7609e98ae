import { readFile, writeFile } from 'node:fs/promises'

import { expect, it } from 'vitest'

import { makeFolder } from '../journal/open-sqlite.ts'
import { serve } from '../rollout/store/open-stores.ts'
import { answering, rolloutFile, rolloutWith } from './rollout-file.ts'

it('rollout set refuses to skip a stage, names the next step and says whether that step is possible', async () => {
  const url = `sqlite:${await makeFolder()}/journal.db`
  answering(await serve(url))
  const rollout = rolloutWith(await rolloutFile(url))
  const skip = ['set', 'acme', 'v3', '--reason', 'x'] as const
  const possible = await rollout(...skip)
  expect([possible.status, possible.stdout]).toEqual([1, ''])
  expect(possible.stderr).toMatch(
    /possible now: markbridge rollout set --config \S+ acme shadow --reason <text>\n$/,
  )
  expect(JSON.parse((await rollout(...skip, '--json')).stdout)).toMatchObject({
    result: 'refused',
    next: { stage: 'shadow', percent: 0, isPossible: true },
  })
  expect(await rollout('set', 'acme', 'shadow', '--reason', 'x')).toMatchObject({ status: 0 })
  for (const step of [skip, ['set', 'acme', 'canary', '--reason', 'x'] as const]) {
    expect(JSON.parse((await rollout(...step, '--json')).stdout)).toMatchObject({
      result: 'refused',
      next: { stage: 'canary', percent: 5, isPossible: false },
    })
    expect((await rollout(...step)).stderr).toMatch(/markbridge rollout advise --config \S+ acme says/)
  }
  // Neither the refusals nor the search for the next step add an entry to the audit trail.
  expect((await rollout('history', 'acme')).stdout.trim().split('\n')).toHaveLength(3)
})

it.each([['back'], ['set', 'shadow']])(
  'rollout %s refuses to let V2 serve a partner if the configuration has no address of V2',
  async (command, ...stage) => {
    const url = `sqlite:${await makeFolder()}/journal.db`
    answering(await serve(url))
    const path = await rolloutFile(url, { partner: { stage: 'v3' } })
    const { upstreams, ...rest } = JSON.parse(await readFile(path, 'utf8')) as { upstreams: { v3: object } }
    await writeFile(path, JSON.stringify({ ...rest, upstreams: { v3: upstreams.v3 } }))
    const rollout = rolloutWith(path)
    for (const dryRun of [['--dry-run'], []]) {
      const refused = await rollout(command, 'acme', ...stage, '--reason', 'x', ...dryRun)
      expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('no address of V2')])
    }
    expect((await rollout('show', 'acme', '--json')).stdout).toContain('"stage":"v3"')
  },
)
