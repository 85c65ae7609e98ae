import { generateKeyPairSync } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { createEvidenceStore } from '../../src/rollout/evidence/evidence-store.ts'
import { createEvidenceKeeper } from '../../src/rollout/evidence/keep-evidence.ts'
import { differing, exchangeOf, keepExchange, recordOf } from '../compare/evidence/exchanges.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { changeTo, goForward, run, serve, type Serving, shadow } from '../rollout/store/open-stores.ts'
import { startDuties } from '../support/start-duties.ts'
import { rolloutFile } from './rollout-file.ts'
import { runCommand } from './run-command.ts'

type Row = Record<string, unknown>

interface Prepared {
  readonly folder: string
  readonly serving: Serving
  readonly config: string
  readonly rollout: (...args: string[]) => ReturnType<typeof runCommand>
  /** Certifies acme and returns the path of the file. */
  readonly certify: (...args: string[]) => Promise<string>
}

/** Serves acme at `shadow`, with one hundred compared learners, one of whom differs. */
async function prepare(): Promise<Prepared> {
  const folder = await makeFolder()
  const url = `sqlite:${join(folder, 'journal.db')}`
  const serving = await serve(url)
  const config = await rolloutFile(url, {
    partner: { clients: 'open', v3: { subscriptionKey: { env: 'ACME_KEY' } } },
  })
  await goForward(serving, changeTo(shadow, { by: 'ada', reason: 'begin' }))
  const live = createEvidenceKeeper({
    store: createEvidenceStore(serving.journal.database),
    onKept: () => undefined,
  })
  for (let school = 0; school < 10; school += 1) {
    const records = Array.from({ length: 10 }, (_, learner) =>
      recordOf(`MARKER-${school}-${learner}`, {
        day: new Date().toISOString().slice(0, 10),
        traits: ['late', 'comment', 'correction'],
        code: 'MARKER-code',
        ...(school === 0 && learner === 0 ? differing : {}),
      }),
    )
    keepExchange(live, exchangeOf(records, { revision: 1, unit: `MARKER-${school}` }))
  }
  const { stop, failures } = startDuties(live.duties)
  await stop()
  expect(failures).toEqual([])
  const rollout = (...args: string[]) =>
    runCommand(['rollout', ...args, '--config', config], { ACME_KEY: 'MARKER-key' })
  let files = 0
  const certify = async (...args: string[]): Promise<string> => {
    const out = join(folder, `certificate-${(files += 1)}.json`)
    expect(await rollout('certify', 'acme', '--out', out, ...args)).toEqual({
      status: 0,
      stdout: '',
      stderr: `markbridge: the certificate is in ${out}\n`,
    })
    return out
  }
  return { folder, serving, config, rollout, certify }
}

async function keysIn(
  folder: string,
  name = 'key',
): Promise<{ readonly key: string; readonly publicKey: string }> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const [key, open] = [join(folder, `${name}.pem`), join(folder, `${name}.pub.pem`)]
  await writeFile(key, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  await writeFile(open, publicKey.export({ type: 'spki', format: 'pem' }))
  return { key, publicKey: open }
}

const read = async (file: string): Promise<Row> => JSON.parse(await readFile(file, 'utf8')) as Row
const findingsOf = (stdout: string): string[] =>
  (JSON.parse(stdout) as { findings: { check: string; result: string }[] }).findings.map(
    ({ check, result }) => `${check} ${result}`,
  )

describe('compare report live:<partner>', () => {
  const environment = { ACME_KEY: 'MARKER-key' }

  it('reports the results of live comparison that the journal stores', async () => {
    const { config } = await prepare()
    const args = ['compare', 'report', 'live:acme', '--config', config, '--format', 'json', '--exact']
    const { status, stdout } = await runCommand(args, environment)
    expect(status).toBe(0)
    expect(stdout).not.toContain('MARKER')
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'live',
      partner: 'acme',
      compared: 100,
      verdicts: { same: 99, differs: 1 },
    })
  })

  it('exits with status 2 when live comparison has no results', async () => {
    const { config } = await prepare()
    const { status, stderr } = await runCommand(
      ['compare', 'report', 'live:other', '--config', config],
      environment,
    )
    expect([status, stderr]).toEqual([2, expect.stringContaining('Live comparison has no results')])
  })
})

describe('advice with evidence', () => {
  it('lists what the next step lacks, with figures', async () => {
    const { rollout } = await prepare()
    const { stdout } = await rollout('advise', 'acme', '--json')
    const advice = JSON.parse(stdout) as { missing: string[]; figures: { comparison: Row } }
    expect(advice.figures.comparison).toMatchObject({
      check: 'reply',
      sampled: 10,
      comparedShare: 1,
      pairs: 100,
      countedPairs: 100,
      schools: 10,
      differing: 1,
      neededPairs: 947,
      days: 1,
      traits: ['comment', 'correction', 'late'],
    })
    expect(advice.missing).toContainEqual(
      expect.stringMatching(
        /^1 learners and days differ.* 4\.66 % .*947 .* markbridge rollout set acme shadow --restart-evidence/,
      ),
    )
    expect(advice.missing).toContain('Replies were compared with V2 on 1 of 5 days.')
    expect((await rollout('advise', 'acme')).stdout).toContain(
      'compared: 100 % of a sample of 10 requests, on 1 day, with 1 attendance code\nlearners and days: 100, of which 100 count (947 needed); 1 differ, so at most 4.66 % of all do',
    )
  })
})

describe('rollout set --restart-evidence', () => {
  it('restarts the evidence at the same stage and records the reason in the audit trail', async () => {
    const { rollout } = await prepare()
    const restart = ['set', 'acme', 'shadow', '--restart-evidence'] as const
    expect((await rollout(...restart, '--percent', '5', '--reason', 'x')).status).toBe(2)
    expect((await rollout('set', 'acme', 'canary', '--restart-evidence', '--reason', 'x')).stderr).toContain(
      'the stage is shadow',
    )
    expect((await rollout(...restart)).status).toBe(2)
    expect(await rollout(...restart, '--reason', 'mapping mended')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^acme: shadow -> shadow \(revision 2\)\.\n$/) as unknown,
    })
    const advice = JSON.parse((await rollout('advise', 'acme', '--json')).stdout) as { missing: string[] }
    expect(advice.missing.join()).not.toContain('differ,')
    expect(advice.missing.join()).toContain('Nothing was compared with V2')
    expect((await rollout('history', 'acme', '--limit', '1')).stdout).toMatch(
      / set +shadow +shadow +2 +mapping mended \(evidence restarted\)\n$/,
    )
  })
})

describe('rollout certify and verify', () => {
  it('certifies the state of a partner, and includes neither data of learners nor secrets', async () => {
    const { certify } = await prepare()
    const file = await certify()
    expect(await read(file)).toMatchObject({
      form: 'markbridge-certificate-1',
      version: '0.1.0',
      partner: 'acme',
      audit: { entries: 2, mac: expect.stringMatching(/./) as unknown, keyed: false },
      stage: { stage: 'shadow', revision: 1, by: 'ada' },
      advice: {
        verdict: 'inconclusive',
        to: { stage: 'canary', percent: 5 },
        figures: { comparison: { pairs: 100, differing: 1 } },
      },
      history: [
        { entry: 1, action: 'propose' },
        { entry: 2, action: 'commit', to: { stage: 'shadow' } },
      ],
      digest: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
      signature: null,
    })
    expect(await readFile(file, 'utf8')).not.toMatch(/MARKER/i)
  })

  it('accepts a signed certificate, also after later changes of the stage', async () => {
    const { folder, rollout, certify } = await prepare()
    const { key, publicKey } = await keysIn(folder)
    const file = await certify('--signing-key', `file:${key}`)
    await rollout('back', 'acme')
    const checked = await rollout('verify', file, '--public-key', publicKey)
    expect(checked).toMatchObject({ status: 0, stderr: '' })
    expect(checked.stdout).toMatch(
      /^Certificate of acme, \d{4}-\S+Z:\n {2}digest: holds\. .*\n {2}signature: holds\. The certificate was signed with this key\.\n {2}audit: holds\. .* 1 later entry\. The trail began without journal\.keys.*\n$/,
    )
    const offline = await rollout('verify', file, '--public-key', publicKey, '--offline', '--json')
    expect(findingsOf(offline.stdout)).toEqual(['digest holds', 'signature holds', 'audit unknown'])
    // Shells keep a key in the environment in one line.
    process.env['CERTIFY_TEST_KEY'] = (await readFile(key, 'utf8')).replaceAll('\n', '\\n')
    const again = await certify('--signing-key', 'env:CERTIFY_TEST_KEY')
    expect((await rollout('verify', again, '--public-key', publicKey)).status).toBe(0)
  })

  it('rejects a certificate that was changed, has another key or belongs to another audit trail', async () => {
    const { folder, serving, rollout, certify } = await prepare()
    const { key, publicKey } = await keysIn(folder)
    const other = await keysIn(folder, 'other')
    const text = await readFile(await certify('--signing-key', `file:${key}`), 'utf8')
    const changed = join(folder, 'changed.json')
    const judge = async (content: string, ...args: string[]): Promise<unknown> => {
      await writeFile(changed, content)
      const { status, stdout } = await rollout('verify', changed, '--json', ...args)
      return [status, ...findingsOf(stdout)]
    }
    expect(await judge(text)).toEqual([0, 'digest holds', 'signature unknown', 'audit holds'])
    // The same content in another layout is the same certificate.
    expect(await judge(JSON.stringify(JSON.parse(text)), '--public-key', publicKey)).toEqual([0, 'digest holds', 'signature holds', 'audit holds']) // prettier-ignore
    expect(await judge(text.replace('"differing": 1', '"differing": 0'))).toEqual([1, 'digest fails', 'signature unknown', 'audit holds']) // prettier-ignore
    expect(await judge(text.replace('"differing": 1', '"differing": 0, "differing": 1'))).toEqual([1, 'digest fails', 'signature unknown', 'audit holds']) // prettier-ignore
    expect(await judge(text, '--public-key', other.publicKey)).toEqual([1, 'digest holds', 'signature fails', 'audit holds']) // prettier-ignore
    expect(await judge(text.replace(/"value": "../, '"value": "AA'))).toEqual([1, 'digest holds', 'signature fails', 'audit holds']) // prettier-ignore
    const unsigned = await readFile(await certify(), 'utf8')
    expect(await judge(unsigned)).toEqual([0, 'digest holds', 'signature unknown', 'audit holds'])
    expect(await judge(unsigned, '--public-key', publicKey)).toEqual([1, 'digest holds', 'signature fails', 'audit holds']) // prettier-ignore
    const { db } = serving.journal.database
    await run(db, `update rollout_audit set content = '{}' where entry = 2`)
    expect(await judge(text)).toEqual([1, 'digest holds', 'signature unknown', 'audit fails'])
    expect(await rollout('certify', 'acme')).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /audit trail is broken.*markbridge rollout verify --config \S+/,
      ) as unknown,
    })
    // A journal without any of these entries.
    const elsewhere = await makeFolder()
    await serve(`sqlite:${join(elsewhere, 'journal.db')}`)
    const config = await rolloutFile(`sqlite:${join(elsewhere, 'journal.db')}`)
    const { status, stdout } = await runCommand(['rollout', 'verify', changed, '--config', config])
    expect([status, stdout]).toEqual([
      1,
      expect.stringContaining('audit: FAILS. The audit trail has 0 entries, but had 2'),
    ])
  })

  it('refuses unusable keys and files, and quotes none of their content', async () => {
    const { folder, rollout, certify } = await prepare()
    const file = await certify()
    const secret = join(folder, 'secret.txt')
    await writeFile(secret, 'MARKER-secret')
    const rsa = join(folder, 'rsa.pem')
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
    await writeFile(rsa, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const rows: [args: string[], says: string][] = [
      [['certify', 'acme', '--signing-key', `file:${secret}`], 'is not a private key in PEM'],
      [['certify', 'acme', '--signing-key', `file:${rsa}`], 'of the type Ed25519'],
      [['certify', 'acme', '--signing-key', 'env:NOT_SET_ANYWHERE'], 'is not set'],
      [['certify', 'acme', '--signing-key', 'MARKER-secret'], '--signing-key must be env:NAME or file:path'],
      [['certify', 'acme', '--out', file], 'exists already'],
      [['certify', 'nobody'], 'nobody'],
      [['verify', secret], 'This is not a certificate: the file is not JSON'],
      [['verify', join(folder, 'none.json')], 'cannot be read'],
      [['verify', file, '--public-key', secret], 'is not a public key in PEM'],
      [['verify', '--offline'], '--offline need a certificate'],
    ]
    for (const [args, says] of rows) {
      const { status, stdout, stderr } = await rollout(...args)
      expect([args, status, stdout]).toEqual([args, 2, ''])
      expect(stderr).toContain(says)
      expect(stderr).not.toContain('MARKER')
    }
    await writeFile(secret, JSON.stringify({ form: 'another' }))
    expect((await rollout('verify', secret)).stderr).toContain('the form is not markbridge-certificate-1')
  })
})
