import { describe, expect, it, vi } from 'vitest'

import { identify } from '../../src/partners/owner.ts'
import {
  batchOf,
  created,
  flatRecord,
  flatRecords,
  guid,
  outcomesOf,
  postBatch,
} from '../support/batch-request.ts'
import {
  type Answer,
  echoRecord,
  holdAnswers,
  postsOf,
  replyWith,
  type SeenRequest,
  startUpstream,
} from '../support/scripted-upstream.ts'
import { type Adapter, codeOf, startAdapter } from '../support/start-adapter.ts'
import { journalFile, type JournalSection, rowsOf } from './support/journal-file.ts'
import { leave, payloadOf } from './support/leave.ts'

const claimsOf = (claims: object): string => JSON.stringify(claims)
const encode = (value: object): string => Buffer.from(claimsOf(value)).toString('base64url')
const jwt = (claims: object): string => `Bearer ${encode({ alg: 'none' })}.${encode(claims)}.c2ln`
const tokenOf = (organisation: string, more: object = {}): string =>
  jwt({ iss: 'https://sts.test', client_id: 'app', organisation, ...more })
const as = (Authorization: string): Record<string, string> => ({ Authorization })
const quick = { partners: [{ id: 'default', match: { any: true }, v3: { readBackAfterMs: [10, 20] } }] }
const batch = batchOf(flatRecords(3))

/** Starts a V3 service that shows every posted mark to the tokens for which `accepted` returns true, and denies other tokens. */
function serve(accepted: (authorization: string) => boolean, answer: Answer = echoRecord) {
  const rows: object[] = []
  return startUpstream((seen, response) => {
    if (!accepted(String(seen.headers.authorization)))
      return replyWith(401, { statusCode: 401, message: 'Wrong token.' })(seen, response)
    if (seen.method === 'GET')
      return replyWith(200, { value: rows.filter((row) => isAsked(seen, row)) })(seen, response)
    rows.push({ ...(JSON.parse(seen.body) as object), ExternalID: guid(rows.length + 77) })
    return answer(seen, response)
  })
}

function isAsked({ url }: SeenRequest, row: object): boolean {
  const { Attendee } = row as { Attendee: { ExternalID: string } }
  return decodeURIComponent(url).includes(Attendee.ExternalID)
}
const reads = (seen: readonly SeenRequest[]): readonly SeenRequest[] =>
  seen.filter(({ method }) => method === 'GET')
const statesIn = (journal: JournalSection): unknown =>
  rowsOf(journal, 'SELECT state, superseded FROM journal_records ORDER BY batch, position').map(
    ({ state, superseded }) => [state, superseded],
  )

describe('the adapter, when a batch with a stored reply is resent', () => {
  const known = [tokenOf('school-1'), tokenOf('school-1', { jti: 'renewed' }), 'bearer of another client']
  const start = async () => {
    const upstream = await serve((token) => known.includes(token))
    return { upstream, adapter: await startAdapter(upstream.url, { journal: journalFile() }) }
  }

  it('sends the stored reply, without asking V3, for the token with which the batch was accepted', async () => {
    const { upstream, adapter } = await start()
    const first = await postBatch(adapter, batch, as(tokenOf('school-1')))
    expect((await postBatch(adapter, batch, as(tokenOf('school-1')))).text).toBe(first.text)
    expect(upstream.seen.length).toBe(3)
  })

  it('sends the stored reply for a renewed token after one read of V3, and remembers the result of the read', async () => {
    const { upstream, adapter } = await start()
    const first = await postBatch(adapter, batch, as(tokenOf('school-1')))
    const renewed = as(tokenOf('school-1', { jti: 'renewed' }))
    const replies = await Promise.all([1, 2].map(() => postBatch(adapter, batch, renewed)))
    replies.push(await postBatch(adapter, batch, renewed))
    expect(replies.map(({ text }) => text)).toEqual(Array(3).fill(first.text))
    expect([postsOf(upstream.seen).length, reads(upstream.seen).length]).toEqual([3, 1])
  })

  it("sends V3's error for a token that V3 rejects, after one read of V3", async () => {
    const { upstream, adapter } = await start()
    await postBatch(adapter, batch, as(tokenOf('school-1')))
    for (let time = 0; time < 2; time += 1) {
      const forged = await postBatch(adapter, batch, as(tokenOf('school-1', { jti: 'forged' })))
      expect([forged.status, JSON.parse(forged.text)]).toEqual([
        401,
        { statusCode: 401, message: 'Wrong token.' },
      ])
    }
    expect(reads(upstream.seen).length).toBe(1)
  })

  it.each([
    ['opaque token', { Authorization: 'bearer wrong' }],
    ['subscription key', { 'Ocp-Apim-Subscription-Key': 'wrong', Authorization: 'bearer wrong' }],
  ])(
    'refuses the stored reply to a client with another %s that resends the same bytes',
    async (_what, headers) => {
      const upstream = await serve((token) => token === 'bearer right')
      const adapter = await startAdapter(upstream.url, { journal: journalFile() })
      await postBatch(adapter, batch, as('bearer right'))
      const stolen = await postBatch(adapter, batch, headers)
      expect(stolen.status).toBe(401)
      expect(stolen.text).not.toContain('ExternalID')
    },
  )

  it('refuses the stored reply for a token with which V3 shows none of the marks of the batch', async () => {
    const upstream = await startUpstream((seen, response) =>
      (seen.method === 'GET' ? replyWith(200, { value: [] }) : echoRecord)(seen, response),
    )
    const adapter = await startAdapter(upstream.url, { journal: journalFile(), ...quick })
    await postBatch(adapter, batch, as('bearer one'))
    const other = await postBatch(adapter, batch, as('bearer two'))
    expect(codeOf(other)).toBe('403 undefined')
    // The adapter reads again after each delay of a read-back, because the first reads may be stale.
    expect(reads(upstream.seen).length).toBe(3)
  })

  it.each([
    ['answers 500', replyWith(500)],
    ['answers 429', replyWith(429)],
    ['resets the connection', ((_seen, response) => void response.socket?.destroy()) satisfies Answer],
  ])('answers 504 rather than 503 for an unchecked token while V3 %s', async (_what, answer) => {
    const upstream = await startUpstream((seen, response) =>
      (seen.method === 'GET' ? answer : echoRecord)(seen, response),
    )
    const adapter = await startAdapter(upstream.url, { journal: journalFile(), ...quick })
    const first = await postBatch(adapter, batch, as('bearer one'))
    const other = await postBatch(adapter, batch, as('bearer two'))
    expect(codeOf(other)).toBe('504 ADP_OUTCOME_UNKNOWN')
    expect((await postBatch(adapter, batch, as('bearer one'))).text).toBe(first.text)
    expect(postsOf(upstream.seen).length).toBe(3)
  })

  it('sends the stored reply for an unchecked token when the first read of V3 fails and the second succeeds', async () => {
    let failures = 0
    const upstream = await startUpstream((seen, response) => {
      if (seen.method !== 'GET') return echoRecord(seen, response)
      if (failures++ === 0) return void response.socket?.destroy()
      return replyWith(200, { value: postsOf(upstream.seen).map(({ body }) => JSON.parse(body) as object) })(
        seen,
        response,
      )
    })
    const adapter = await startAdapter(upstream.url, { journal: journalFile(), ...quick })
    const first = await postBatch(adapter, batch, as('bearer one'))
    const other = await postBatch(adapter, batch, as('bearer two'))
    expect([other.status, other.text]).toEqual([200, first.text])
    expect([postsOf(upstream.seen).length, reads(upstream.seen).length]).toEqual([3, 2])
  })

  it('sends a stored reply without a check if the reply contains no data of V3', async () => {
    const upstream = await serve((token) => token === 'bearer right')
    const adapter = await startAdapter(upstream.url, { journal: journalFile() })
    const broken = batchOf(['{"Learner":'])
    const first = await postBatch(adapter, broken, as('bearer right'))
    expect((await postBatch(adapter, broken, as('bearer wrong'))).text).toBe(first.text)
    const mismatch = batchOf(flatRecords(1), { batch: 'b1', boundary: 'b2' })
    const one = await postBatch(adapter, mismatch, as('bearer right'))
    expect((await postBatch(adapter, mismatch, as('bearer wrong'))).text).toBe(one.text)
    expect(reads(upstream.seen)).toEqual([])
  })

  it('checks the token even while the first copy of the batch is in progress', async () => {
    const { answer, release } = holdAnswers()
    const upstream = await serve((token) => token === 'bearer right', answer)
    const adapter = await startAdapter(upstream.url, { journal: journalFile() })
    const first = postBatch(adapter, batch, as('bearer right'))
    await upstream.arrived(3)
    expect((await postBatch(adapter, batch, as('bearer wrong'))).status).toBe(401)
    release()
    expect(outcomesOf(await first)).toEqual(created(3))
  })

  it('sends the stored reply without a check if the adapter uses its own tokens for V3', async () => {
    const upstream = await startUpstream((seen, response) =>
      (seen.url === '/token'
        ? replyWith(200, { access_token: 'own', expires_in: 3600, token_type: 'Bearer' })
        : echoRecord)(seen, response),
    )
    const { createHash } = await import('node:crypto')
    const { Secret } = await import('../../src/config/index.ts')
    const match = { subscriptionKeySha256: createHash('sha256').update('client-key').digest('hex') }
    const client = { clientId: 'app', clientSecret: new Secret('s'), scope: 'attendance' }
    const auth = { mode: 'clientCredentials', tokenUrl: `${upstream.url}/token`, ...client }
    const adapter = await startAdapter(upstream.url, {
      journal: journalFile(),
      partners: [{ id: 'acme', match, v3: { auth } }],
    })
    const first = await postBatch(adapter, batch, as('bearer one'))
    expect((await postBatch(adapter, batch, as('bearer two'))).text).toBe(first.text)
    expect(reads(upstream.seen)).toEqual([])
  })
})

describe('an open record of a client', () => {
  const left = { payload: payloadOf(batchOf(flatRecords(1))), learners: [1] }
  const newer = batchOf([flatRecord(1, { MinutesLate: 7 })], { batch: 'newer', boundary: 'newer' })
  const rules = {
    id: 'default',
    match: { any: true },
    identityClaims: ['iss', 'client_id', 'organisation'],
    tokens: undefined,
    unit: { claim: 'organisation' },
  }
  const tokensOf = (seen: readonly SeenRequest[]): unknown[] =>
    seen.map(({ headers }) => headers.authorization)
  const finished = (adapter: Adapter): Promise<void> =>
    vi.waitFor(() => expect(adapter.events().map(({ msg }) => msg)).toContain('records recovered'), {
      timeout: 60_000,
    })

  it('is not finished with the credentials of another client, and delays a newer mark of the other client only by seconds', async () => {
    const upstream = await serve(() => true)
    const journal = journalFile()
    await leave(journal, left)
    const adapter = await startAdapter(upstream.url, { journal, ...quick })
    const startedMs = performance.now()
    const reply = await postBatch(adapter, newer, as('bearer of another client'))
    expect(outcomesOf(reply)).toEqual(created(1))
    expect(performance.now() - startedMs).toBeLessThan(20_000)
    // V3 receives one call only: the post of the newer mark.
    expect(postsOf(upstream.seen).map(({ body }) => /"MinutesLate":(\w+)/.exec(body)?.[1])).toEqual(['7'])
    expect(reads(upstream.seen)).toEqual([])
    expect(statesIn(journal)).toEqual([
      [3, 1],
      [1, 0],
    ])
  })

  const nobody = { iss: 'idp', aud: 'v3' }
  const pairs: [what: string, one: string, other: string][] = [
    [
      'have no claim in common but the issuer',
      claimsOf({ ...nobody, jti: '1' }),
      claimsOf({ ...nobody, jti: '2' }),
    ],
    ...['azp', 'appid', 'sub'].map((name): [string, string, string] => [
      `differ in ${name} alone`,
      claimsOf({ iss: 'idp', [name]: 'app-A' }),
      claimsOf({ iss: 'idp', [name]: 'app-B' }),
    ]),
    [
      'differ in the last digit of a large number',
      '{"iss":"idp","client_id":9007199254740993}',
      '{"iss":"idp","client_id":9007199254740992}',
    ],
    ['differ in a number beyond the range of doubles', '{"iss":"idp","client_id":1e999}', '{"iss":"idp"}'],
    [
      'differ in an object',
      '{"iss":"idp","organisation":{"id":"a"}}',
      '{"iss":"idp","organisation":{"id":"b"}}',
    ],
    [
      'repeat the name of a claim',
      '{"iss":"idp","client_id":"app-A","client_id":"x"}',
      '{"iss":"idp","client_id":"app-B","client_id":"x"}',
    ],
  ]
  it.each(pairs)(
    "is finished only with its own client's token when the tokens of two clients %s",
    async (_what, one, other) => {
      const [own, foreign, third] = [one, other, '{"iss":"idp","client_id":"third"}'].map(
        (claims) => `Bearer e30.${Buffer.from(claims).toString('base64url')}.c2ln`,
      ) as [string, string, string]
      const upstream = await serve(() => true)
      const journal = journalFile()
      for (const [learner, authorization] of [
        [1, own],
        [2, third],
      ] as const) {
        const { owner, credentialsHash } = identify(rules, { authorization, subscriptionKey: 'client-key' })
        const payload = payloadOf(batchOf([flatRecord(learner)]), credentialsHash)
        await leave(journal, { owner, payload, learners: [learner] })
      }
      const adapter = await startAdapter(upstream.url, { journal, ...quick })
      const send = (name: string, token: string): Promise<unknown> =>
        postBatch(adapter, batchOf([flatRecord(3)], { batch: name, boundary: name }), as(token))
      // Recovery of the third client's record proves that recovery ran after V3 had accepted the foreign token.
      await send('a', foreign)
      await send('b', third)
      await finished(adapter)
      await send('c', own)
      await vi.waitFor(() => expect(statesIn(journal)).toEqual(Array(5).fill([1, 0])), { timeout: 60_000 })
      const seen = upstream.seen.filter(({ url, body }) =>
        `${decodeURIComponent(url)}${body}`.includes(guid(1)),
      )
      expect(new Set(tokensOf(seen))).toEqual(new Set([own]))
    },
  )

  it('stays open until its client returns, if no other record waits for it', async () => {
    const upstream = await serve(() => true)
    const journal = journalFile()
    await leave(journal, left)
    const adapter = await startAdapter(upstream.url, { journal, ...quick })
    const other = batchOf([flatRecord(2)], { batch: 'other', boundary: 'other' })
    await postBatch(adapter, other, as('bearer of another client'))
    await vi.waitFor(() => expect(adapter.events().map(({ msg }) => msg)).toContain('recovery waits'), {
      timeout: 60_000,
    })
    expect(statesIn(journal)).toEqual([
      [0, 0],
      [1, 0],
    ])
  })

  it('is finished with another token of the same client when V3 has accepted that token', async () => {
    const upstream = await serve((token) => token !== tokenOf('school-1', { jti: 'forged' }))
    const journal = journalFile()
    const client = { authorization: tokenOf('school-1'), subscriptionKey: 'client-key' }
    await leave(journal, { ...left, owner: identify(rules, client).owner })
    const adapter = await startAdapter(upstream.url, { journal, ...quick })
    const other = (name: string) => batchOf([flatRecord(2)], { batch: name, boundary: name })
    // Neither a forged token nor a token of another school finishes the record.
    await postBatch(adapter, other('a'), as(tokenOf('school-1', { jti: 'forged' })))
    await postBatch(adapter, other('b'), as(tokenOf('school-2')))
    await postBatch(adapter, other('c'), as(tokenOf('school-1', { jti: 'renewed' })))
    await finished(adapter)
    const own = upstream.seen.filter(({ url, body }) => `${decodeURIComponent(url)}${body}`.includes(guid(1)))
    expect(new Set(tokensOf(own))).toEqual(new Set([tokenOf('school-1', { jti: 'renewed' })]))
    expect(postsOf(own).length).toBe(1)
  })

  it('is finished with the same opaque token when V3 has accepted that token', async () => {
    const upstream = await serve(() => true)
    const journal = journalFile()
    const client = { authorization: 'bearer the same', subscriptionKey: 'client-key' }
    const { owner, credentialsHash } = identify(rules, client)
    const payload = payloadOf(batchOf(flatRecords(1)), credentialsHash)
    await leave(journal, { ...left, owner, payload })
    const adapter = await startAdapter(upstream.url, { journal, ...quick })
    const other = (name: string) => batchOf([flatRecord(2)], { batch: name, boundary: name })
    // Clients with opaque tokens and the same subscription key count as one owner. Still, only the original token finishes the record.
    await postBatch(adapter, other('a'), as('bearer of another client'))
    await postBatch(adapter, other('b'), as('bearer the same'))
    await finished(adapter)
    const own = upstream.seen.filter(({ url, body }) => `${decodeURIComponent(url)}${body}`.includes(guid(1)))
    expect(new Set(tokensOf(own))).toEqual(new Set(['bearer the same']))
    expect(postsOf(own).length).toBe(1)
  })
})
