import { expect, it } from 'vitest'

import { drip, startRawUpstream } from '../support/raw-upstream.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'

/** Starts a service that answers with `first` and then sends `again` every 20 ms until the client closes the connection. */
async function startDripping(first: string, again: string): Promise<string> {
  const { url } = await startRawUpstream((socket, seen, piece) => {
    if (seen !== piece) return
    socket.write(first)
    drip(socket, again)
  })
  return url
}

const ways: [what: string, first: string, again: string][] = [
  ['headers', 'HTTP/1.1 200 OK\r\nX: ', 'x'],
  ['interim responses', '', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
]
it.each(ways)(
  'a passed-through request waits at most headersMs for a V3 that drips %s',
  async (_, first, again) => {
    const v3 = { timeouts: { headersMs: 300 } }
    const adapter = await startAdapter(await startDripping(first, again), { v3 })
    const get = await adapter.request('GET', '/Learner/V3/Learners')
    expect([get.status, get.text]).toEqual([503, expect.stringContaining('ADP_UPSTREAM_UNAVAILABLE')])
    const patch = await adapter.request('PATCH', '/Learner/V3/LearnerPersonals', { body: '{}' })
    expect([patch.status, patch.text]).toEqual([504, expect.stringContaining('ADP_OUTCOME_UNKNOWN')])
  },
)

it('a V2 read ends when its budget ends, even if V3 sends its answer byte by byte', async () => {
  const body = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  const url = await startDripping(body, '1\r\n \r\n')
  const adapter = await startAdapter(url, onePartner({ v3: { budgetMs: 400 } }))
  const filter = encodeURIComponent(
    'AttendableEventStart ge 2025-01-01T00:00:00Z and AttendableEventStart le 2025-01-02T00:00:00Z',
  )
  const reply = await adapter.request('GET', `/V2/Attendance/AttendanceRecords?$filter=${filter}`)
  expect([reply.status, reply.text]).toEqual([503, expect.stringContaining('ADP_BUDGET_EXCEEDED')])
})
