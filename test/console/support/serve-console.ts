import { createHash, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { request } from 'undici'
import { expect, vi } from 'vitest'

import { openConsole } from '../../../src/cli/console/open-console.ts'
import { Secret } from '../../../src/config/index.ts'
import { createLogger } from '../../../src/observability/logger.ts'
import { sampleMark, startSandbox } from '../../sandbox/start-sandbox.ts'
import { batchOf, type BatchText, postBatch } from '../../support/batch-request.ts'
import type { OnEnd } from '../../support/end-of-file.ts'
import { adapterConfig, startAdapter } from '../../support/start-adapter.ts'

/** A text that no output may contain. */
export const HUSH = 'HUSHCOMMENT'
export const clientKey = 'HUSHKEY-51c7d0'
export const clientToken = 'HUSHTOKEN-90aa13'
export const tokenOf = (name: string): string => `HUSHTOKEN-of-${name}`
const credentials = {
  'Ocp-Apim-Subscription-Key': clientKey,
  Authorization: `bearer ${clientToken}`,
  'x-partner': 'acme',
}
const domains = ['Attendance', 'Learner.Indentifier', 'Learner.Registration']

const operator = (name: string, role: string, more: object = {}) => ({
  ...{ name, role, ...more },
  tokenSha256: createHash('sha256').update(tokenOf(name)).digest('hex'),
})

type Fields = Readonly<Record<string, string | readonly string[]>>

/**
 * Starts the sandbox, the adapter and the console as `demo` does, but with operators: olga (operator, may reveal values), otto (operator)
 * and anna (approver). V3 serves acme, and V2 serves zenith. A step forward needs two people. `more` are further partners.
 */
export async function serveConsole(onEnd: OnEnd, journalUrl?: string, more: readonly object[] = []) {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-console-'))
  onEnd(() => rm(folder, { recursive: true }))
  const sandbox = await startSandbox(
    { v2Port: 0, keys: [clientKey], tokens: [{ token: clientToken, domains }] },
    onEnd,
  )
  const settingsWith = (acmeV3: object = {}) => ({
    ...{ console: { port: 0 }, v2: { baseUrl: sandbox.v2Url } },
    journal: {
      url: journalUrl ?? `sqlite:${join(folder, 'journal.db')}`,
      keys: [{ id: 'k1', key: new Secret('ab'.repeat(32)) }],
    },
    rollout: {
      operators: [
        operator('olga', 'operator', { reveal: true }),
        operator('otto', 'operator'),
        operator('anna', 'approver'),
      ],
    },
    partners: [
      {
        id: 'acme',
        match: { header: { name: 'x-partner', value: 'acme' } },
        stage: 'v3',
        v3: { budgetMs: 5_000, ...acmeV3 },
      },
      {
        id: 'zenith',
        match: { header: { name: 'x-partner', value: 'zenith' } },
        stage: 'legacy',
      },
      ...more,
    ],
  })
  const settings = settingsWith()
  // Only the console has `approval: two`. With it the adapter would begin at legacy in place of the stage in the file.
  const rollout = { ...settings.rollout, approval: 'two' }
  const config = adapterConfig(sandbox.url, { ...settings, rollout })
  const adapter = await startAdapter(sandbox.url, settings, {}, onEnd)
  const log: string[] = []
  const logger = createLogger('trace', { write: (line) => log.push(line) })
  if (config.console === undefined) throw new Error('no console')
  const data = adapter.app.consoleData()
  const opened = await openConsole(config.console, () => config, logger, data, sandbox.url)
  onEnd(opened.close)

  const samples = await sandbox.samples()
  let used = 0
  /** Creates a mark for a learner and an event that no earlier call has used. */
  const mark = (members: object = {}) => {
    const { learners, events } = samples
    const [at, session] = [used % learners.length, Math.floor(used / learners.length)]
    used += 1
    const own = { AttendableEvent: events[session], Comment: `${HUSH} ${used}`, MinutesLate: 7 }
    return { ...sampleMark(samples, at, own), ...members }
  }
  const post = (batch: BatchText, headers: Readonly<Record<string, string>> = {}) =>
    postBatch(adapter, batch, { ...credentials, ...headers })
  /** Posts records as one batch. If `isMismatch` is true, the client gets a single 200 for all records. */
  const postMarks = (records: readonly (object | string)[], isMismatch = false) => {
    const [batch, boundary] = [`batch_${randomUUID()}`, `batch_${randomUUID()}`]
    return post(batchOf(records, { batch, boundary: isMismatch ? boundary : batch }))
  }
  const setFaults = async (...faults: readonly object[]): Promise<void> => {
    await sandbox.request('DELETE', '/_sandbox/faults')
    if (faults.length > 0) await sandbox.put('faults', faults)
  }
  /** Sends a form, or requests a page if `form` is missing, with the token of a person. */
  const ask = async (name: string, path: string, form?: Fields, accept = 'application/json') => {
    const reply = await request(`${opened.url}${path}`, {
      method: form === undefined ? 'GET' : 'POST',
      headers: { accept, authorization: `Bearer ${tokenOf(name)}`, 'content-type': 'application/json' },
      ...(form === undefined ? {} : { body: JSON.stringify(form) }),
    })
    return { status: reply.statusCode, text: await reply.body.text() }
  }
  /** Uploads a batch to the page "Try it" as a browser does, and returns the JSON text of the response. */
  const tryFile = async (file: Buffer): Promise<string> => {
    const fieldOf = (name: string): string => `--form\r\nContent-Disposition: form-data; name="${name}"`
    const fields = `${fieldOf('partner')}\r\n\r\nacme\r\n${fieldOf('batch')}; filename="batch.txt"\r\n\r\n`
    const { body } = await request(`${opened.url}/try`, {
      method: 'POST',
      headers: {
        ...{ accept: 'application/json', authorization: `Bearer ${tokenOf('olga')}` },
        'content-type': 'multipart/form-data; boundary=form',
      },
      body: Buffer.concat([Buffer.from(fields), file, Buffer.from('\r\n--form--\r\n')]),
    })
    return body.text()
  }
  return {
    ...{ sandbox, adapter, samples, folder, log, mark, post, postMarks, setFaults, ask, tryFile },
    url: opened.url,
    /** Reloads the original configuration, with these members added to the `v3` section of acme. */
    reload: (acmeV3?: object) => adapter.app.reload(() => adapterConfig(sandbox.url, settingsWith(acmeV3))),
    /**
     * Creates a record that waits for a retry and a record that is no longer retried, each in a batch whose client got 200. V3 is down
     * afterwards.
     */
    leaveBehind: async (): Promise<void> => {
      await setFaults()
      await postMarks([mark({ SchoolAttendanceCode: randomUUID() })], true)
      await setFaults({ kind: 'status', status: 503, headers: { 'Retry-After': '100' }, face: 'V3' })
      await postMarks([mark()], true)
    },
    /** Waits until the console has counted and indexed this many batches. */
    isIndexed: (batches: number): Promise<void> =>
      vi.waitFor(async () => {
        const { index } = JSON.parse((await ask('olga', '/')).text) as { index: { waiting: number } }
        const found = JSON.parse((await ask('olga', '/batches')).text) as { batches: unknown[] }
        expect([index.waiting, found.batches.length]).toEqual([0, batches])
      }, 60_000),
  }
}

export type ServedConsole = Awaited<ReturnType<typeof serveConsole>>
