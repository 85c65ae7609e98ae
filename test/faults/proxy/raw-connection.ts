import type { Socket } from 'node:net'

import type { ConnectionFault } from './fault.ts'

/** Passes bytes both ways without interpreting them. The fault occurs after the number of bytes from the target that `fault` names. */
export function serveRaw(client: Socket, upstream: Socket, fault: ConnectionFault): void {
  const { cutAfter = Infinity, haltAfter = Infinity, haltMs = 0 } = boundsOf(fault)
  let passed = 0
  let halting: NodeJS.Timeout | undefined
  const sockets = [client, upstream]
  const halt = (): void => {
    for (const socket of sockets) socket.pause()
    halting = setTimeout(() => {
      for (const socket of sockets) socket.resume()
    }, haltMs)
  }
  client.on('data', (bytes: Buffer) => upstream.write(bytes))
  upstream.on('data', (bytes: Buffer) => {
    client.write(bytes.subarray(0, cutAfter - passed))
    passed += bytes.length
    if (passed >= cutAfter) for (const socket of sockets) socket.resetAndDestroy()
    else if (passed >= haltAfter && halting === undefined) halt()
  })
  client.resume()
  client.once('end', () => upstream.end())
  upstream.once('end', () => client.end())
  for (const [one, other] of [sockets, sockets.toReversed()]) {
    one?.once('close', () => {
      clearTimeout(halting)
      other?.destroy()
    })
  }
}

function boundsOf(fault: ConnectionFault): { cutAfter?: number; haltAfter?: number; haltMs?: number } {
  return typeof fault === 'object' ? fault : {}
}
