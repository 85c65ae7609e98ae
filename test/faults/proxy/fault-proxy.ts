import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

import { type Fault, type FaultPlan, noFaults } from './fault.ts'
import { type RequestHandler, serveHttp } from './http-connection.ts'
import { serveRaw } from './raw-connection.ts'

/** The number of faults so far by kind. `refuse`, `cut` and `halt` affect connections, and the other kinds affect requests. */
export type FaultCounts = Record<Fault['kind'] | 'refuse' | 'cut' | 'halt', number>

export interface FaultProxyOptions {
  /** Ports on loopback. Connections go to them in turn, skipping ports without a listener. */
  readonly targets: readonly number[]
  readonly plan?: FaultPlan
  /** `http`: faults hit single requests. `raw`: the proxy passes bytes of any protocol, and only connection faults occur. */
  readonly wire?: 'http' | 'raw'
  /** Called for each forwarded request, if `wire` is `http`. */
  readonly onForward?: RequestHandler['onForward']
  /** Changes a request before it is forwarded, if `wire` is `http`. Default: requests stay unchanged. */
  readonly rewrite?: RequestHandler['rewrite']
}

export interface FaultProxy {
  readonly port: number
  readonly url: string
  counts(): Readonly<FaultCounts>
  /** Lets everything pass from now on. */
  stopFaults(): void
  close(): Promise<void>
}

/** Starts a TCP proxy on its own port that breaks connections, requests and replies as planned. The caller closes the proxy. */
export async function startFaultProxy({
  targets,
  plan = noFaults,
  wire = 'http',
  onForward = () => () => undefined,
  rewrite = (bytes) => bytes,
}: FaultProxyOptions): Promise<FaultProxy> {
  let current = plan
  let turn = 0
  const counts: FaultCounts = {
    pass: 0, resetBefore: 0, resetAfter: 0, truncate: 0, stall: 0, slow: 0, refuse: 0, cut: 0, halt: 0,
  } // prettier-ignore
  const sockets = new Set<Socket>()
  const track = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.setNoDelay(true)
    // Either connection may break at any time. The error is ignored here, because the reader of the socket sees the end.
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    return socket
  }
  const connectUpstream = async (): Promise<Socket | undefined> => {
    for (let tried = 0; tried < targets.length; tried += 1) {
      const socket = track(connect(targets[turn++ % targets.length] ?? 0, '127.0.0.1'))
      if (await connected(socket)) return socket
    }
    return undefined
  }
  const serve = async (client: Socket): Promise<void> => {
    const fault = current.connection()
    const upstream = fault === 'refuse' ? undefined : await connectUpstream()
    if (fault === 'refuse') counts.refuse += 1
    if (upstream === undefined) {
      client.resetAndDestroy()
    } else if (wire === 'raw' || fault !== 'pass') {
      if (typeof fault === 'object') counts['cutAfter' in fault ? 'cut' : 'halt'] += 1
      serveRaw(client, upstream, fault)
    } else {
      const decide = (head: string): Fault => {
        const struck = current.request(head)
        counts[struck.kind] += 1
        return struck
      }
      await serveHttp(client, upstream, { decide, onForward, rewrite })
    }
  }
  const server = createServer({ pauseOnConnect: wire === 'raw' }, (client) => void serve(track(client)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    counts: () => ({ ...counts }),
    stopFaults: () => {
      current = noFaults
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

async function connected(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    socket.once('connect', () => {
      resolve(true)
    })
    socket.once('close', () => {
      resolve(false)
    })
  })
}
