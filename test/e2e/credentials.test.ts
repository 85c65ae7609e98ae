import { createHash } from 'node:crypto'

import { describe, expect, it } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { startSandbox } from '../sandbox/start-sandbox.ts'
import {
  batchOf,
  created,
  flatRecord,
  flatRecords,
  outcomesOf,
  postBatch,
  postRecords,
  statusesOf,
} from '../support/batch-request.ts'
import {
  type Answer,
  echoRecord,
  replyWith,
  startUpstream,
  type Upstream,
} from '../support/scripted-upstream.ts'
import { type Adapter, codeOf, type Reply, startAdapter, startWithV3 } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'
import { sandboxRegister } from './support/sandbox-register.ts'

const v2Key = 'client-key'
const organisation = '1f0c7c3e-0000-4000-8000-000000000001'

/** Builds a partner that is recognised by its V2 key and has its own V3 key and client credentials. */
function partnerWith(tokenUrl: string, auth: object = {}): { partners: object[] } {
  const match = { subscriptionKeySha256: createHash('sha256').update(v2Key).digest('hex') }
  const client = {
    clientId: 'school-app',
    clientSecret: new Secret('hush-secret'),
    scope: 'attendance',
    organisation,
  }
  const own = { mode: 'clientCredentials', tokenUrl, ...client, ...auth }
  return { partners: [{ id: 'acme', match, v3: { subscriptionKey: new Secret('hush-v3-key'), auth: own } }] }
}

const isToken = (url: string): boolean => url === '/connect/token'

const ownDenied = 'own credentials denied by V3'
const noToken = 'no token for V3'

/** Starts a V3 service that numbers its tokens and rejects the tokens in `refused`. */
async function startService(refused: readonly string[], answer: Answer = echoRecord): Promise<Upstream> {
  let issued = 0
  return startUpstream((seen, response) => {
    if (isToken(seen.url)) {
      issued += 1
      return replyWith(200, { access_token: `hush-token-${issued}`, expires_in: 3600, token_type: 'Bearer' })(
        seen,
        response,
      )
    }
    const token = String(seen.headers.authorization).replace('Bearer ', '')
    return (refused.includes(token) ? replyWith(401, { statusCode: 401, message: 'Unauthorized.' }) : answer)(
      seen,
      response,
    )
  })
}

function expectNoSecret(adapter: Adapter, text: string): void {
  expect(`${adapter.log.join('')}${text}`).not.toContain('hush')
}

describe('an adapter with its own client credentials', () => {
  it('writes to the sandbox with its own token and subscription key (service-facts 11)', async () => {
    const sandbox = await startSandbox({
      keys: ['hush-v3-key'],
      clients: [{ id: 'school-app', secret: 'hush-secret', organisation, domains: ['Attendance'] }],
    })
    const adapter = await startAdapter(sandbox.url, partnerWith(`${sandbox.url}/connect/token`))
    const register = await sandboxRegister(sandbox, 10)
    const reply = await postBatch(adapter, register.batch)
    expect(statusesOf(reply)).toEqual(Array(10).fill(201))
    expect(await register.written()).toEqual(register.learners)
    const passed = await adapter.request('GET', '/V3/LearnerMedicals')
    expect(passed.status).toBe(403) // V3 checks the security domains of the adapter's token, not those of the client.
    expectNoSecret(adapter, reply.text + passed.text)
  })

  it("requests one token for concurrent batches, with the form fields of the service, and does not forward the client's token", async () => {
    const service = await startService([])
    const adapter = await startAdapter(service.url, partnerWith(`${service.url}/connect/token`))
    await Promise.all([1, 2, 3].map((n) => postBatch(adapter, batchOf([flatRecord(n)]))))
    const asked = service.seen.filter(({ url }) => isToken(url))
    expect(asked.map(({ body }) => Object.fromEntries(new URLSearchParams(body)))).toEqual([
      {
        grant_type: 'client_credentials',
        client_id: 'school-app',
        client_secret: 'hush-secret',
        scope: 'attendance',
        acr_values: `orgselected:${organisation}`,
      },
    ])
    const sent = service.seen.filter(({ url }) => !isToken(url)).map(({ headers }) => [headers.authorization, headers['ocp-apim-subscription-key']]) // prettier-ignore
    expect(sent).toEqual(Array(3).fill(['Bearer hush-token-1', 'hush-v3-key']))
  })

  it('renews a rejected token once, and then posts every record', async () => {
    const service = await startService(['hush-token-1'])
    const adapter = await startAdapter(service.url, partnerWith(`${service.url}/connect/token`))
    const reply = await postBatch(adapter, batchOf(flatRecords(5)))
    expect(outcomesOf(reply)).toEqual(created(5))
    const one = await adapter.request('POST', '/V2/Attendance/AttendanceRecords', {
      body: JSON.stringify(flatRecord(9)),
    })
    expect([one.status, service.seen.filter(({ url }) => isToken(url)).length]).toEqual([201, 2])
  })

  it.each([
    ['a batch', (adapter: Adapter) => postBatch(adapter, batchOf(flatRecords(5)))],
    ['a passed-through read', (adapter: Adapter) => adapter.request('GET', '/V3/LearnerMedicals')],
  ])(
    'reports a second 401 to %s as a fault of the adapter, and requests no further token',
    async (_what, ask) => {
      const service = await startService(['hush-token-1', 'hush-token-2'])
      const adapter = await startAdapter(service.url, partnerWith(`${service.url}/connect/token`))
      expect(codeOf(await ask(adapter))).toBe('502 ADP_V3_CREDENTIALS')
      expect(adapter.events()).toContainEqual({ msg: ownDenied, partner: 'acme', what: 'token' })
      expect(service.seen.filter(({ url }) => isToken(url)).length).toBe(2)
    },
  )

  it.each(['none', 'sqlite'])(
    'leaves no record open if it gets no new token, so that a resend of the batch is posted (journal: %s)',
    async (kind) => {
      let tokens = 0
      const upstream = await startUpstream((seen, response) => {
        if (!isToken(seen.url)) {
          const known = seen.headers.authorization === 'Bearer hush-token-3'
          return (known ? echoRecord : replyWith(401))(seen, response)
        }
        tokens += 1
        if (tokens === 2) return replyWith(503)(seen, response)
        const token = { access_token: `hush-token-${tokens}`, expires_in: 3600, token_type: 'Bearer' }
        return replyWith(200, token)(seen, response)
      })
      const adapter = await startAdapter(upstream.url, {
        ...partnerWith(`${upstream.url}/connect/token`),
        journal: kind === 'none' ? { url: 'none' } : journalFile(),
      })
      const batch = batchOf(flatRecords(2))
      expect((await postBatch(adapter, batch)).status).toBe(503)
      const page = await adapter.request('GET', '/metrics')
      expect(page.text).toMatch(/journal_records\{[^}]*state="open"[^}]*\} 0\n/)
      expect(outcomesOf(await postBatch(adapter, batch))).toEqual(created(2))
    },
  )

  it('renews a rejected token for reads too', async () => {
    const answer = replyWith(200, { value: [] })
    for (const path of ['/V2/Attendance/AttendanceRecords?$filter=Present%20eq%20true', '/V3/LearnerMedicals']) {
      const service = await startService(['hush-token-1'], answer)
      const adapter = await startAdapter(service.url, partnerWith(`${service.url}/connect/token`))
      const reply = await adapter.request('GET', path)
      expect([path, reply.status, (JSON.parse(reply.text) as { value: unknown }).value]).toEqual([path, 200, []])
      const sent = service.seen.filter(({ url }) => !isToken(url))
      expect(sent.map(({ headers }) => headers.authorization)).toEqual(['Bearer hush-token-1', 'Bearer hush-token-2'])
      expectNoSecret(adapter, reply.text)
    }
  }) // prettier-ignore

  it('reports a 401 to a streamed pass-through request as a fault of the adapter, and renews the token for the next request', async () => {
    const service = await startService(['hush-token-1'], replyWith(204))
    const adapter = await startAdapter(service.url, partnerWith(`${service.url}/connect/token`))
    const patch = (): Promise<{ status: number }> =>
      adapter.request('PATCH', '/V3/LearnerPersonals(1)', { body: '{"QuickNote":"x"}' })
    expect((await patch()).status).toBe(502)
    await expect.poll(() => service.seen.filter(({ url }) => isToken(url)).length).toBe(2)
    expect((await patch()).status).toBe(204)
    expect(service.seen.filter(({ method }) => method === 'PATCH').map(({ body }) => body)).toEqual(
      Array(2).fill('{"QuickNote":"x"}'),
    )
  })

  it('posts no record again after a 401 if V3 has accepted another record', async () => {
    const service = await startService([], (seen, response) =>
      (seen.body.includes('000000000002') ? replyWith(401) : echoRecord)(seen, response),
    )
    const adapter = await startAdapter(service.url, partnerWith(`${service.url}/connect/token`))
    const parts = await postRecords(adapter, flatRecords(3))
    expect(parts.map(({ status }) => status)).toEqual([201, 502, 201])
    expect(service.seen.length).toBe(4)
  })

  const failures: [name: string, answer: Answer, status: number, code: string][] = [
    ['refuses the client', replyWith(400, { error: 'unauthorized_client' }), 502, 'ADP_V3_CREDENTIALS'],
    ['refuses the client with an unknown error code', replyWith(401, { error: 'hush-secret is wrong' }), 502, 'ADP_V3_CREDENTIALS'],
    ['returns no token', replyWith(200, { token: 'hush-token' }), 502, 'ADP_UPSTREAM_PROTOCOL'],
    ['returns no JSON', replyWith(200, '<html>hush'), 502, 'ADP_UPSTREAM_PROTOCOL'],
    ['returns a token with a line end', replyWith(200, { access_token: 'hush\r\nX: y' }), 502, 'ADP_UPSTREAM_PROTOCOL'],
    ['answers 429', replyWith(429), 503, 'ADP_UPSTREAM_UNAVAILABLE'],
    ['answers 500', replyWith(500, 'hush'), 503, 'ADP_UPSTREAM_UNAVAILABLE'],
    ['resets the connection', (_seen, response) => void response.socket?.resetAndDestroy(), 503, 'ADP_UPSTREAM_UNAVAILABLE'],
  ] // prettier-ignore
  it.each(failures)(
    'posts nothing and reports the failure when the token endpoint %s',
    async (_name, answer, status, code) => {
      const service = await startUpstream(answer)
      const adapter = await startAdapter(service.url, partnerWith(`${service.url}/connect/token`))
      const reply = await postBatch(adapter, batchOf(flatRecords(2)))
      expect([reply.status, JSON.parse(reply.text)]).toMatchObject([status, { error: { code } }])
      expect(service.seen.map(({ url }) => url)).toEqual(['/connect/token'])
      const reported = adapter.events().filter(({ msg }) => msg === ownDenied || msg === noToken)
      expect(reported).toEqual([
        code === 'ADP_V3_CREDENTIALS'
          ? { msg: ownDenied, partner: 'acme', what: 'token' }
          : { msg: noToken, partner: 'acme' },
      ])
      expectNoSecret(adapter, reply.text)
    },
  )
})

describe('a configured subscription key that V3 rejects', () => {
  const read = '/V2/Attendance/AttendanceRecords?$filter=Present%20eq%20true'
  const invalidKey = 'Access denied due to invalid subscription key. Make sure to provide a valid key.'
  const denying = (message: string): Answer => replyWith(401, { statusCode: 401, message })
  const withKey = (subscriptionKey?: Secret): { partners: object[] } => ({
    partners: [
      {
        id: 'acme',
        match: { any: true },
        clients: 'open',
        v3: { ...(subscriptionKey && { subscriptionKey }) },
      },
    ],
  })
  const ask = async (adapter: Adapter): Promise<Reply[]> => [
    await postBatch(adapter, batchOf(flatRecords(3))),
    await adapter.request('POST', '/V2/Attendance/AttendanceRecords', {
      body: JSON.stringify(flatRecord(9)),
    }),
    await adapter.request('GET', read),
    await adapter.request('GET', '/V3/LearnerMedicals'),
    await adapter.request('PATCH', '/V3/LearnerPersonals(1)', { body: '{"QuickNote":"x"}' }),
  ]

  it('leads to a 502, a log line and a metric that name the key as the cause, and the client can resend', async () => {
    let isMended = false
    const upstream = await startUpstream((seen, response) =>
      (isMended ? echoRecord : denying(invalidKey))(seen, response),
    )
    const adapter = await startAdapter(upstream.url, {
      ...withKey(new Secret('hush-v3-key')),
      journal: journalFile(),
    })
    const replies = await ask(adapter)
    expect(replies.map(codeOf)).toEqual(Array(5).fill('502 ADP_V3_CREDENTIALS'))
    const denied = adapter.events().filter(({ msg }) => msg === ownDenied)
    expect(denied).toEqual(Array(5).fill({ msg: ownDenied, partner: 'acme', what: 'subscriptionKey' }))
    const { text } = await adapter.request('GET', '/metrics')
    expect(text).toMatch(/own_credentials_denied_total\{partner="acme",what="subscriptionKey"\} 5\n/)
    expect(text).toMatch(/journal_records\{[^}]*state="open"[^}]*\} 0\n/)
    isMended = true
    const again = await postRecords(adapter, flatRecords(3))
    expect(again.map(({ status }) => status)).toEqual([201, 201, 201])
  })

  it.each([
    ['the token of the client', new Secret('hush-v3-key'), 'Unauthorized.'],
    ['the subscription key of the client', undefined, invalidKey],
  ])('is not named as the cause when V3 rejects %s', async (_name, key, message) => {
    const { adapter } = await startWithV3(denying(message), withKey(key))
    const replies = await ask(adapter)
    expect(replies.map(({ status, text }) => [status, text])).toEqual(
      Array(5).fill([401, JSON.stringify({ statusCode: 401, message })]),
    )
    expect(adapter.events().filter(({ msg }) => msg === ownDenied)).toEqual([])
  })
})
