import { describe, expect, it } from 'vitest'

import { toUpstreamFields } from '../../src/proxy/forwarded-fields.ts'
import { incomingMessage } from '../support/incoming-message.ts'

const credentials = { authorization: 'bearer t', subscriptionKey: 'v3-key' }

function forwarded(headers: Record<string, string>): unknown {
  const fields = toUpstreamFields(incomingMessage({ headers }), { credentials, identity: false })
  return Object.fromEntries(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1]]] : [])))
}

describe('toUpstreamFields', () => {
  const own = {
    authorization: 'bearer t',
    'ocp-apim-subscription-key': 'v3-key',
    'x-forwarded-port': '80',
  }

  it('RFC 9110 7.6.1: leaves out what ends at this hop, and what Connection names', () => {
    const hop = { connection: 'close, X-Hop , ,te', 'x-hop': '1', te: 'x', 'keep-alive': '1', upgrade: 'h2c', trailer: 'x', expect: '100-continue', 'proxy-authorization': 'x', 'proxy-connection': 'x' } // prettier-ignore
    expect(forwarded({ ...hop, accept: '*/*', cookie: 'a=1' })).toEqual({
      accept: '*/*',
      cookie: 'a=1',
      ...own,
    })
  })

  it('keeps what frames the body and says who asks, whatever Connection names', () => {
    const kept = {
      'content-length': '5',
      'x-forwarded-for': '10.0.0.1',
    }
    const connection =
      'content-length, Transfer-Encoding, host, authorization, ocp-apim-subscription-key, X-Forwarded-For'
    expect(forwarded({ ...kept, connection, 'ocp-apim-subscription-key': 'client' })).toEqual({
      ...kept,
      ...own,
    })
  })
})
