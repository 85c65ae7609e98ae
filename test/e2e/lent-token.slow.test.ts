import { expect, it } from 'vitest'

import { batchOf, flatRecord, guid } from '../support/batch-request.ts'
import { echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { journalFile } from './support/journal-file.ts'
import { startStopping } from './support/stopping-adapter.ts'

const tokenOf = (claims: object): string =>
  `Bearer e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`

it.each([
  ['the azp claim', { iss: 'idp', azp: 'app-A' }, { iss: 'idp', azp: 'app-B' }],
  ['the jti claim alone', { iss: 'idp', jti: '1' }, { iss: 'idp', jti: '2' }],
])(
  'the adapter never finishes an interrupted write with the token of another client: tokens that differ in %s',
  async (_what, one, other) => {
    const [own, foreign, third] = [one, other, { iss: 'idp', client_id: 'third' }].map(tokenOf) as [
      string,
      string,
      string,
    ]
    let isStalled = true
    const upstream = await startUpstream((seen, response) => {
      if (isStalled) return
      return (seen.method === 'GET' ? replyWith(200, { value: [] }) : echoRecord)(seen, response)
    })
    const config = {
      upstreams: { v3: { baseUrl: upstream.url } },
      journal: { url: journalFile().url },
      partners: [{ id: 'acme', match: { any: true }, v3: { readBackAfterMs: [10, 20] } }],
    }
    const as = (Authorization: string) => ({ Authorization, 'Ocp-Apim-Subscription-Key': 'shared' })
    const batch = (name: string, learner: number) =>
      batchOf([flatRecord(learner)], { batch: name, boundary: name })
    const killed = await startStopping(config)
    const lost = Promise.allSettled([
      killed.post(batch('a', 1), as(own)),
      killed.post(batch('b', 2), as(third)),
    ])
    await upstream.arrived(2)
    await killed.kill()
    await lost
    isStalled = false
    const adapter = await startStopping(config)
    await adapter.post(batch('c', 3), as(foreign))
    await adapter.post(batch('d', 3), as(third))
    // Recovery of the third client's write proves that recovery ran after the adapter had received the foreign token.
    await adapter.logged(/records recovered/)
    await adapter.post(batch('e', 3), as(own))
    await adapter.logged(/records recovered[^]*records recovered/)
    const seen = upstream.seen.filter(({ url, body }) =>
      `${decodeURIComponent(url)}${body}`.includes(guid(1)),
    )
    expect(new Set(seen.map(({ headers }) => headers.authorization))).toEqual(new Set([own]))
    expect(seen.filter(({ method }) => method === 'POST').length).toBe(2)
  },
)
