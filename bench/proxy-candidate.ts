import { createServer } from 'node:net'

import type { Child } from './child.ts'
import type { NginxPeer } from './nginx-peer.ts'

/** A proxy that a benchmark measures. */
export interface Candidate {
  readonly port: number
  /** Returns the processor time of the proxy so far. */
  readonly cpuMs: () => Promise<number>
}

export interface Measured {
  readonly requestsPerSecond: number
  readonly cpuMicros: number
  readonly p50Ms: number
}

/** Measures one round of requests to a candidate. */
export async function measure({ port, cpuMs }: Candidate, load: Child): Promise<Measured> {
  const before = await cpuMs()
  const { requests = 0, ms = 0, p50Ms = 0 } = await load.ask(String(port))
  const cpu = (await cpuMs()) - before
  return { requestsPerSecond: (requests * 1_000) / ms, cpuMicros: (cpu * 1_000) / requests, p50Ms }
}

export function ofChild(child: Child): Candidate {
  return {
    port: child.ready['port'] ?? 0,
    cpuMs: async () => (await child.ask('cpu'))['cpuMs'] ?? Number.NaN,
  }
}

export function ofNginx(nginx: NginxPeer): Candidate {
  return { port: nginx.port, cpuMs: () => Promise.resolve(nginx.cpuMs()) }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}
