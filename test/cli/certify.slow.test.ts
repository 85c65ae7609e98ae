import { generateKeyPairSync } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'

import { createEvidenceStore } from '../../src/rollout/evidence/evidence-store.ts'
import { createEvidenceKeeper } from '../../src/rollout/evidence/keep-evidence.ts'
import { differing, exchangeOf, keepExchange, recordOf } from '../compare/evidence/exchanges.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { hashOfRow } from '../../src/rollout/store/audit-trail.ts'
import {
  changeTo,
  goForward,
  rowsIn,
  run,
  serve,
  type Serving,
  shadow,
} from '../rollout/store/open-stores.ts'
import { startDuties } from '../support/start-duties.ts'
import { rolloutFile } from './rollout-file.ts'
import { runCommand } from './run-command.ts'

type Row = Record<string, unknown>

interface Prepared {
  readonly folder: string
  readonly serving: Serving
  readonly config: string
  readonly rollout: (...args: string[]) => ReturnType<typeof runCommand>
  /** Certifies the partner acme with the key in the folder or with the given key, and returns the path of the certificate. */
  readonly certify: (key?: string) => Promise<string>
}

/** Opens a journal with the partner acme at `shadow` and the comparison results of 100 learners, one of which differs. */
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
  const { key: ownKey } = await keysIn(folder)
  const certify = async (key = `file:${ownKey}`): Promise<string> => {
    const out = join(folder, `certificate-${(files += 1)}.jws`)
    expect(await rollout('certify', 'acme', '--out', out, '--signing-key', key)).toEqual({
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

/** Decodes the payload of a certificate. */
const read = async (file: string): Promise<Row> => {
  const [, payload = ''] = (await readFile(file, 'utf8')).split('.')
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Row
}
const findingsOf = (stdout: string): string[] =>
  (JSON.parse(stdout) as { findings: { check: string; result: string }[] }).findings.map(
    ({ check, result }) => `${check} ${result}`,
  )

describe('the command compare report live:<partner>', () => {
  const environment = { ACME_KEY: 'MARKER-key' }

  it('prints the results of live comparison from the journal', async () => {
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

  it('exits with status 2 if live comparison has no results', async () => {
    const { config } = await prepare()
    const { status, stderr } = await runCommand(
      ['compare', 'report', 'live:other', '--config', config],
      environment,
    )
    expect([status, stderr]).toEqual([2, expect.stringContaining('Live comparison has no results')])
  })
})

describe('the command rollout advise', () => {
  it('lists the unmet conditions of the next step with their figures', async () => {
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
        /^1 learner-days differ.* 4\.66 % .*947 .* markbridge rollout set acme shadow --restart-evidence/,
      ),
    )
    expect(advice.missing).toContain('Replies were compared with V2 on 1 of 5 days.')
    expect((await rollout('advise', 'acme')).stdout).toContain(
      'compared: 100 % of a sample of 10 requests, on 1 day, with 1 attendance code\nlearner-days: 100, of which 100 count (947 needed); 1 differ, so at most 4.66 % of all do',
    )
  })
})

describe('the command rollout set --restart-evidence', () => {
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

describe('a certificate of the command rollout', () => {
  it('contains the state of a partner and the evidence of each stage, but no data of learners and no secrets', async () => {
    const { rollout, certify } = await prepare()
    await rollout('set', 'acme', 'shadow', '--restart-evidence', '--reason', 'again')
    const file = await certify()
    const certificate = await read(file)
    expect(certificate).toMatchObject({
      version: '0.1.0',
      partner: 'acme',
      audit: { entries: 3, hash: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown },
      stage: { stage: 'shadow', revision: 2 },
      advice: { verdict: 'inconclusive', to: { stage: 'canary', percent: 5 } },
      evidence: [{ stage: 'shadow', revision: 1, comparison: { check: 'reply', pairs: 100, differing: 1 } }],
      history: [
        { entry: 1, action: 'propose' },
        { entry: 2, action: 'commit', to: { stage: 'shadow' } },
        { entry: 3, action: 'set' },
      ],
    })
    expect(JSON.stringify(certificate)).not.toMatch(/MARKER/i)
  })

  it('still passes rollout verify after a change of the stage', async () => {
    const { folder, rollout, certify } = await prepare()
    const file = await certify()
    await rollout('back', 'acme')
    const checked = await rollout('verify', file, '--public-key', join(folder, 'key.pub.pem'))
    expect(checked).toMatchObject({ status: 0, stderr: '' })
    expect(checked.stdout).toMatch(
      /^Certificate of acme, \d{4}-\S+Z:\n {2}signature: holds\. .*\n {2}audit: holds\. .* 1 later entry\.\n$/,
    )
    const offline = await rollout('verify', file, '--public-key', join(folder, 'key.pub.pem'), '--offline', '--json') // prettier-ignore
    expect(findingsOf(offline.stdout)).toEqual(['signature holds', 'audit unknown'])
    expect(JSON.parse(offline.stdout)).toMatchObject({ certificate: await read(file) })
    // An environment variable often holds a PEM key on one line, with `\n` in place of each line break.
    const key = (await readFile(join(folder, 'key.pem'), 'utf8')).replaceAll('\n', '\\n')
    process.env['CERTIFY_TEST_KEY'] = key
    const again = await certify('env:CERTIFY_TEST_KEY')
    expect((await rollout('verify', again, '--public-key', join(folder, 'key.pub.pem'))).status).toBe(0)
  })

  it('fails rollout verify if it was changed, was signed with another key or belongs to another audit trail', async () => {
    const { folder, serving, rollout, certify } = await prepare()
    const { publicKey } = await keysIn(folder, 'other')
    const text = await readFile(await certify(), 'utf8')
    const changed = join(folder, 'changed.jws')
    const own = ['--public-key', join(folder, 'key.pub.pem')]
    const judge = async (content: string, ...args: string[]): Promise<unknown> => {
      await writeFile(changed, content)
      const { status, stdout } = await rollout('verify', changed, '--json', ...args)
      return [status, ...findingsOf(stdout)]
    }
    const [head = '', payload = '', signature = ''] = text.trim().split('.')
    const content = Buffer.from(payload, 'base64url').toString()
    const withContent = (next: string): string =>
      [head, Buffer.from(next).toString('base64url'), signature].join('.')
    expect(await judge(text)).toEqual([0, 'signature unknown', 'audit holds'])
    expect(await judge(text, ...own)).toEqual([0, 'signature holds', 'audit holds'])
    expect(await judge(text, '--public-key', publicKey)).toEqual([1, 'signature fails', 'audit holds'])
    expect(await judge(withContent(content.replace('"differing":1', '"differing":0')), ...own)).toEqual([1, 'signature fails', 'audit holds']) // prettier-ignore
    expect(await judge(withContent(content.replace('"hash":"', '"hash":"0')), ...own)).toEqual([1, 'signature fails', 'audit fails']) // prettier-ignore
    expect(await judge([head, payload, 'AAAA'].join('.'), ...own)).toEqual([1, 'signature fails', 'audit holds']) // prettier-ignore
    // `alg: none` claims that the certificate needs no signature, so `verify` must reject the file.
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'markbridge-certificate+json' })).toString('base64url') // prettier-ignore
    await writeFile(changed, [none, payload, ''].join('.'))
    expect(await rollout('verify', changed, ...own)).toMatchObject({ status: 2, stdout: '' })

    // Once all hashes are recomputed, the altered audit trail is consistent, but the hash in the certificate reveals the change.
    const { db } = serving.journal.database
    await rewriteTrail(db)
    expect((await rollout('verify')).status).toBe(0)
    expect(await judge(text, ...own)).toEqual([1, 'signature holds', 'audit fails'])
    await run(db, `update rollout_audit set content = '{}' where entry = 2`)
    expect(await judge(text, ...own)).toEqual([1, 'signature holds', 'audit fails'])
    expect(await rollout('certify', 'acme', '--signing-key', `file:${folder}/key.pem`)).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /audit trail is broken.*markbridge rollout verify --config \S+/,
      ) as unknown,
    })
    // This journal has none of the certified entries.
    const elsewhere = await makeFolder()
    await serve(`sqlite:${join(elsewhere, 'journal.db')}`)
    const config = await rolloutFile(`sqlite:${join(elsewhere, 'journal.db')}`)
    await writeFile(changed, text)
    const { status, stdout } = await runCommand(['rollout', 'verify', changed, '--config', config])
    expect([status, stdout]).toEqual([
      1,
      expect.stringContaining('the trail ends after entry 0, but this machine has seen 2 entries'),
    ])
  })

  it('is neither created nor checked if the key or a file is unusable, and the error quotes no content of either', async () => {
    const { folder, rollout, certify } = await prepare()
    const file = await certify()
    const secret = join(folder, 'secret.txt')
    await writeFile(secret, 'MARKER-secret')
    const rsa = join(folder, 'rsa.pem')
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
    await writeFile(rsa, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    const key = ['--signing-key', `file:${folder}/key.pem`]
    const rows: [args: string[], says: string][] = [
      [['certify', 'acme'], '--signing-key'],
      [['certify', 'acme', '--signing-key', `file:${secret}`], 'is not a private key in PEM'],
      [['certify', 'acme', '--signing-key', `file:${rsa}`], 'of the type Ed25519'],
      [['certify', 'acme', '--signing-key', 'env:NOT_SET_ANYWHERE'], 'is not set'],
      [
        ['certify', 'acme', '--signing-key', 'MARKER-secret'],
        '--signing-key does not name the source of a key',
      ],
      [['certify', 'acme', '--out', file, ...key], 'exists already'],
      [['certify', 'nobody', ...key], 'nobody'],
      [['verify', secret], 'The file is not a certificate'],
      [['verify', join(folder, 'none.jws')], 'cannot be read'],
      [['verify', file, '--public-key', secret], 'is not a public key in PEM'],
      [['verify', '--offline'], '--offline need a certificate'],
    ]
    for (const [args, says] of rows) {
      const { status, stdout, stderr } = await rollout(...args)
      expect([args, status, stdout]).toEqual([args, 2, ''])
      expect(stderr).toContain(says)
      expect(stderr).not.toContain('MARKER')
    }
  })
})

/** Changes a reason in the audit trail and recomputes all hashes, as anyone who can write to the database could. */
async function rewriteTrail(db: Serving['journal']['database']['db']): Promise<void> {
  let last = ''
  for (const row of await rowsIn<Parameters<typeof hashOfRow>[1]>(db, 'rollout_audit')) {
    const content = row.content.replaceAll('begin', 'other')
    last = hashOfRow(last, { ...row, content })
    await sql`update rollout_audit set content = ${content}, hash = ${last} where entry = ${row.entry}`.execute(db) // prettier-ignore
  }
}
