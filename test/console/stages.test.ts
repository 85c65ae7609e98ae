import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { request } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { openConsole } from '../../src/cli/console/open-console.ts'
import { writeRun } from '../../src/compare/run/run-files.ts'
import { parseConfig } from '../../src/config/index.ts'
import { openJournal } from '../../src/journal/index.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { countName } from '../../src/rollout/evidence/count-name.ts'
import { openRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { termRun } from '../compare/report/sample-runs.ts'
import { runCommand } from '../cli/run-command.ts'
import { createSampleData } from './support/sample-data.ts'

const token = (name: string): string => `token-of-${name}`
const operator = (name: string, role: string, more: object = {}) => ({
  ...{ name, role, ...more },
  tokenSha256: createHash('sha256').update(token(name)).digest('hex'),
})

let folder = ''
let opened: Awaited<ReturnType<typeof openConsole>>
let url = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-console-'))
  url = `sqlite:${join(folder, 'journal.db')}`
  await (await openJournal({ url })).close()
  const given = {
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:9' }, v2: { baseUrl: 'http://127.0.0.1:9' } },
    journal: { url },
    console: { port: 0, runs: join(folder, 'runs') },
    rollout: {
      operators: [
        operator('olga', 'operator'),
        operator('anna', 'approver'),
        operator('vera', 'viewer'),
        operator('zoe', 'operator', { partners: ['zenith'] }),
      ],
    },
    partners: [
      { id: 'acme', stage: 'legacy', match: { subscriptionKeySha256: 'a'.repeat(64) } },
      { id: 'zenith', stage: 'legacy', match: { subscriptionKeySha256: 'b'.repeat(64) } },
    ],
  }
  const config = parseConfig(given)
  await writeFile(join(folder, 'markbridge.yaml'), JSON.stringify(given))
  if (config.console === undefined) throw new Error('no console')
  const data = { ...createSampleData([]), readKept: () => Promise.resolve(undefined) }
  opened = await openConsole(config.console, () => config, createLogger('silent'), data)
})
afterAll(async () => {
  await opened.close()
  await rm(folder, { recursive: true })
})

/** Sends a step as a person, and returns the status and the JSON document of the response. */
async function post(name: string, partner: string, form: Readonly<Record<string, string>>) {
  const reply = await request(`${opened.url}/partners/${partner}`, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      authorization: `Bearer ${token(name)}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(form),
  })
  return { status: reply.statusCode, ...((await reply.body.json()) as object) }
}

/** Requests the JSON document of a page. */
async function ask(name: string, path: string): Promise<unknown> {
  const headers = { accept: 'application/json', authorization: `Bearer ${token(name)}` }
  return (await request(`${opened.url}${path}`, { headers })).body.json()
}

test('the console takes a step like the command line, but only for a person with the required role', async () => {
  const set = { step: 'set', stage: 'shadow', reason: 'compare' }
  expect(opened.link).toBeUndefined()
  expect(await post('vera', 'acme', set)).toMatchObject({ status: 409, result: 'forbidden' })
  expect(await post('anna', 'acme', set)).toMatchObject({ status: 409, result: 'forbidden' })
  expect(await post('zoe', 'acme', set)).toMatchObject({ status: 404 })
  expect(await post('olga', 'acme', { ...set, dryRun: '1' })).toMatchObject({
    status: 200,
    result: 'possible',
  })
  expect(await post('olga', 'acme', { ...set, stage: 'v3' })).toMatchObject({
    status: 409,
    result: 'refused',
  })
  expect(await post('olga', 'acme', set)).toMatchObject({
    status: 200,
    result: 'done',
    to: { stage: 'shadow' },
  })
  const canary = { step: 'set', stage: 'canary', percent: '5', reason: 'first schools' }
  expect(await post('olga', 'acme', canary)).toMatchObject({ status: 409, result: 'early' })
  expect(await post('anna', 'acme', { step: 'approve', reason: 'seen' })).toMatchObject({
    status: 409,
    result: 'refused',
  })
  expect(await post('anna', 'acme', { step: 'back', reason: 'V2 is enough' })).toMatchObject({
    ...{ status: 200, result: 'done', to: { stage: 'legacy' } },
  })
  expect(await post('zoe', 'zenith', set)).toMatchObject({ status: 200, result: 'done' })

  const store = await openRolloutStore({ url })
  const history = await store.history({})
  expect(history.map(({ by, partner, action, reason }) => [by, partner, action, reason])).toEqual([
    ['olga', 'acme', 'propose', 'compare (advice: ready)'],
    ['olga', 'acme', 'commit', 'compare (advice: ready)'],
    ['anna', 'acme', 'back', 'V2 is enough'],
    ['zoe', 'zenith', 'propose', 'compare (advice: ready)'],
    ['zoe', 'zenith', 'commit', 'compare (advice: ready)'],
  ])
  await store.close()
})

test('the console returns the same JSON documents that the command line prints', async () => {
  const command = async (...args: string[]): Promise<object> => {
    const file = join(folder, 'markbridge.yaml')
    const { stdout, stderr } = await runCommand(['rollout', ...args, '--config', file, '--json'])
    expect(stderr).toBe('')
    return JSON.parse(stdout) as object
  }
  const entries = (await command('history')) as { readonly entries: readonly object[] }
  expect(await ask('olga', '/audit')).toEqual({ entries: entries.entries.toReversed() })
  const shown = await command('show', 'acme')
  const { entries: own } = (await command('history', 'acme')) as typeof entries
  expect(shown).toMatchObject({ partner: 'acme', since: expect.any(String) as unknown })
  expect(await ask('olga', '/partners/acme')).toMatchObject({ ...shown, history: own.toReversed() })
  const partners = expect.arrayContaining([expect.objectContaining(shown)]) as unknown
  expect(await ask('olga', '/partners')).toMatchObject({ partners })
})

test('the audit trail contains the console actions that change no stage, and stays intact', async () => {
  const reply = await request(`${opened.url}/letters?kind=deadLetters`, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      authorization: `Bearer ${token('olga')}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ record: ['42.7'], reason: 'sent anew' }),
  })
  expect(await reply.body.json()).toEqual({ changed: 1 })
  const store = await openRolloutStore({ url })
  expect((await store.history({})).at(-1)).toMatchObject({
    ...{ by: 'olga', action: 'clear', reason: 'acme: batch 42, parts 8: sent anew' },
  })
  expect(await store.verify()).toMatchObject({ broken: undefined })
  await store.close()
})

test('the console shows live comparison to people who may see the partner, and runs to people who see all partners', async () => {
  const store = await openRolloutStore({ url })
  let day = ''
  for (const partner of ['acme', 'zenith']) {
    const { period, today } = await store.evidence.key({ partner, stage: 'shadow', revision: 1 })
    day = today
    const counts = new Map([
      [countName('exchange', 'batch', 'reply', 'compared'), 4],
      [countName('verdict', 'batch', 'reply', 'same'), 113],
      [countName('verdict', 'batch', 'reply', 'differs'), 7],
      [countName('comparedOn', today, 'same'), 113],
      [countName('comparedOn', today, 'differs'), 7],
      [countName('difference', 'Comment', 'value', 'length:10-20', 'length:1-9'), 7],
    ])
    await store.evidence.add(period, [{ counts, pairs: [] }])
  }
  await store.close()
  const run = 'run-20260327-160000-9f3c'
  await writeRun(join(folder, 'runs'), run, JSON.stringify({ ...termRun(), run }))

  const trend = [{ day, compared: 120, differing: 5 }]
  // The comparison page must show the same verdict for a partner as the list of partners.
  const { partners } = (await ask('olga', '/partners')) as {
    partners: { partner: string; advice: { verdict: string } }[]
  }
  const verdictOf = (partner: string) => partners.find((one) => one.partner === partner)?.advice.verdict
  const found = (partner: string) => ({
    ...{
      partner,
      verdict: verdictOf(partner),
      compared: 120,
      offered: 120,
      verdicts: { same: 115, differs: 5 },
      trend,
    },
    differences: [{ path: 'Comment', v2Class: 'length:10-20', v3Class: 'length:1-9', count: 5 }],
  })
  expect(await ask('olga', '/comparison')).toMatchObject({
    live: [found('acme'), found('zenith')],
    runs: [{ run, summary: { outcome: 'differs', partner: 'acme' } }],
  })
  expect(await ask('zoe', '/comparison')).toMatchObject({ live: [found('zenith')], runs: [] })
  expect(await ask('zoe', '/comparison/live:zenith')).toMatchObject({ partner: 'zenith', outcome: 'differs' })
})
