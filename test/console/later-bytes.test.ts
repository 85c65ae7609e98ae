import { expect, it } from 'vitest'

import { readMessages } from '../e2e/support/raw-message.ts'
import { RawClient } from '../support/raw-client.ts'
import { tails } from '../walls/support/later-bytes.ts'
import { startConsole } from './support/start-console.ts'

const request = 'GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'

async function statusesOf(client: RawClient): Promise<number[]> {
  const replies = readMessages(Buffer.from(await client.untilClosed(), 'latin1'))
  return replies.map(({ startLine }) => Number(startLine.split(' ')[1]))
}

it.each(Object.entries(tails))(
  'the console replies to a request that is followed by %s',
  async (_name, [tail, status]) => {
    const console = await startConsole()
    const client = await RawClient.open(Number(new URL(console.url).port), request + tail)
    expect(await statusesOf(client)).toEqual([200, status])
    await console.close()
  },
)

it('the console replies to a client that has stopped sending', async () => {
  const console = await startConsole()
  const client = await RawClient.open(Number(new URL(console.url).port))
  client.socket.end(request)
  expect(await statusesOf(client)).toEqual([200])
  await console.close()
})
