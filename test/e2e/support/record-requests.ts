import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'

import { onTestFinished } from 'vitest'

import { readMessage } from './raw-message.ts'

/** Collects the requests of a program byte for byte, in the order in which they became complete. */
export interface RequestRecording {
  /** The URL that the program uses in place of the service's URL. */
  readonly url: string
  readonly requests: Buffer[]
}

export async function recordRequests(port: number): Promise<RequestRecording> {
  const requests: Buffer[] = []
  const server = createServer((client) => {
    const service = connect(port, '127.0.0.1')
    let pending: Buffer = Buffer.alloc(0)
    client.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk])
      // `pending` contains at most one request, because a client waits for its reply before it sends the next request.
      if (readMessage(pending) === undefined) return
      requests.push(pending)
      pending = Buffer.alloc(0)
    })
    client.on('error', () => service.destroy()).on('close', () => service.destroy())
    service.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.pipe(service).pipe(client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}
