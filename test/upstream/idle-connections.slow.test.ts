import { expect, it, onTestFinished } from 'vitest'

import { systemClock } from '../../src/clock.ts'
import { createConnections } from '../../src/upstream/connections.ts'
import { CallGroup, sendCall } from '../../src/upstream/index.ts'
import { startRawUpstream } from '../support/raw-upstream.ts'

it('createConnections closes an idle connection after its own timeout, even if the server announces a longer timeout', async () => {
  const { promise: closed, resolve: onClose } = Promise.withResolvers<number>()
  const { url } = await startRawUpstream((socket) => {
    const idleFromMs = performance.now()
    socket.once('end', () => onClose(performance.now() - idleFromMs))
    socket.write(
      'HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\nKeep-Alive: timeout=75, max=1000\r\n\r\n',
    )
  })
  const connections = createConnections(url, {
    connections: 1,
    timeouts: { connectMs: 10_000, headersMs: 10_000 },
    clock: systemClock,
  })
  onTestFinished(() => connections.close())
  const group = new CallGroup(systemClock, () => 20_000)
  const request = { path: '/', method: 'GET', headers: [] as string[] } as const
  const end = await sendCall(connections, request, {}, { clock: systemClock, group, maxBytes: 1_000 })
  expect(end.status).toBe(204)
  // The limit is far below the server's 75 s, so that the test also passes on a busy machine.
  expect(await closed).toBeLessThan(60_000)
})
