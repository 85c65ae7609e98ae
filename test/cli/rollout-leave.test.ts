import { expect, it } from 'vitest'

import { startFaces } from '../e2e/support/compared-faces.ts'
import { journalFile } from '../e2e/support/journal-file.ts'
import { batchOf, postBatch } from '../support/batch-request.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { rolloutFile, rolloutWith } from './rollout-file.ts'

interface Document {
  readonly clients: readonly { readonly client: string; readonly requests: number }[]
  readonly client: string | null
}

it('rollout leave lists each client with its latest write and the side that served that write', async () => {
  const faces = await startFaces({ keys: ['first', 'second', 'third'] })
  const journal = journalFile()
  const partner = { id: 'acme', match: { any: true } }
  const post = async (stage: string, key: string, number: number): Promise<number> => {
    const settings = { journal, v2: { baseUrl: faces.v2Url }, partners: [{ ...partner, stage }] }
    const adapter = await startAdapter(faces.v3Url, settings)
    const batch = batchOf([faces.mark(number)], {
      batch: `batch_${number}`,
      changeset: `changeset_${number}`,
    })
    const headers = { ...batch.headers, 'Ocp-Apim-Subscription-Key': key, Authorization: 'bearer sandbox' }
    const { status } = await postBatch(adapter, { ...batch, headers })
    await adapter.app.close()
    return status
  }
  const config = await rolloutFile(journal.url, { partner: { stage: 'v3' } })
  const rollout = rolloutWith(config)
  const leave = async (...options: string[]): Promise<Document> =>
    JSON.parse((await rollout('leave', 'acme', '--json', ...options)).stdout) as Document

  expect(await post('v3', 'first', 1)).toBe(200)
  expect((await leave()).clients).toMatchObject([{ requests: 1, lastServedBy: 'V3' }])
  expect(await post('v3', 'second', 2)).toBe(200)
  expect(await post('v3', 'first', 3)).toBe(200)
  // V3 rejects this key, so the write must not appear in the list of clients.
  expect(await post('v3', 'unknown', 4)).toBe(401)
  const found = await leave()
  expect(found).toMatchObject({
    partner: 'acme',
    stage: 'v3',
    keptForMs: 90 * 86_400_000,
    clients: [{ requests: 2 }, { requests: 1 }],
    client: null,
  })
  const withKey = rolloutWith(config, { KEY: 'second', TOKEN: 'sandbox' })
  const given = ['leave', 'acme', '--subscription-key', 'env:KEY', '--token', 'env:TOKEN'] as const
  const second = found.clients[1]?.client ?? ''
  expect(JSON.parse((await withKey(...given, '--json')).stdout)).toMatchObject({ client: second })
  const { stdout } = await withKey(...given)
  expect(stdout).toMatch(new RegExp(`\\n${second.slice(0, 12)} +1 .*Z  V3\\n`))
  expect(stdout).toContain(`client ${second.slice(0, 12)}.`)
  expect((await withKey(...given.slice(0, 4))).status).toBe(2)
  expect((await rollout('leave', 'nobody')).status).toBe(2)
})

it('rollout leave shows V2 as the side of a client whose latest write was served by V2', async () => {
  const faces = await startFaces()
  const journal = journalFile()
  const adapter = await startAdapter(faces.v3Url, {
    ...{ journal, v2: { baseUrl: faces.v2Url } },
    partners: [{ id: 'acme', match: { any: true }, stage: 'shadow' }],
  })
  const rollout = rolloutWith(await rolloutFile(journal.url, { partner: { stage: 'shadow' } }))
  expect((await rollout('leave', 'acme')).stdout).toContain('no write of a V2 client')
  const batch = batchOf([faces.mark(1)])
  const headers = {
    ...batch.headers,
    'Ocp-Apim-Subscription-Key': 'sandbox',
    Authorization: 'bearer sandbox',
  }
  expect((await postBatch(adapter, { ...batch, headers })).status).toBe(200)
  await expect
    .poll(async () => (JSON.parse((await rollout('leave', 'acme', '--json')).stdout) as Document).clients)
    .toMatchObject([{ requests: 1, lastServedBy: 'V2' }])
})
