import type { Socket } from 'node:net'

/** Passes bytes both ways and knows nothing of them; breaks both sides after `cutAfter` bytes from the other side. */
export function serveRaw(client: Socket, upstream: Socket, cutAfter = Infinity): void {
  let left = cutAfter
  const breakBoth = (): void => {
    client.resetAndDestroy()
    upstream.resetAndDestroy()
  }
  client.on('data', (bytes: Buffer) => upstream.write(bytes))
  upstream.on('data', (bytes: Buffer) => {
    client.write(bytes.subarray(0, left))
    left -= bytes.length
    if (left <= 0) breakBoth()
  })
  client.resume()
  client.once('end', () => upstream.end())
  upstream.once('end', () => client.end())
  client.once('close', () => upstream.destroy())
  upstream.once('close', () => client.destroy())
}
