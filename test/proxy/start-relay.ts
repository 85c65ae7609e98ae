import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

import { systemClock } from '../../src/clock.ts'
import type { AdapterError } from '../../src/errors.ts'
import { createAddressList } from '../../src/http/address.ts'
import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { createByteBudget } from '../../src/proxy/byte-budget.ts'
import { replaceForwarding } from '../../src/proxy/forwarded-fields.ts'
import type { ForwardCall, ForwardOutcome } from '../../src/proxy/forwarder.ts'
import { createRelays, type Relays } from '../../src/proxy/forwarder.ts'
import { type Refusal, soleQueue } from '../../src/upstream/index.ts'

export interface RelayUnderTest {
  readonly port: number
  readonly log: string[]
  readonly relays: Relays
  readonly calls: { readonly status: number | undefined }[]
  readonly refusals: Refusal[]
  readonly outcomes: Promise<ForwardOutcome>[]
  /** Resolves once the request at this position is being relayed. */
  outcomeStarted(index: number): Promise<void>
  /** Abandons the upload of the request at this position. */
  giveUp(index: number): AdapterError | undefined
  outcome(index?: number): Promise<ForwardOutcome>
}

export interface RelaySettings {
  readonly timeoutMs?: number
  readonly connections?: number
  readonly acquireMs?: number
  readonly call?: Partial<ForwardCall>
}

/** Starts a plain HTTP server that forwards every request through a relay to this address. */
export async function startRelay(url: string, settings: RelaySettings = {}): Promise<RelayUnderTest> {
  const { timeoutMs = 300, connections = 4, acquireMs = 2_000, call = {} } = settings
  const log: string[] = []
  const calls: { readonly status: number | undefined }[] = []
  const refusals: Refusal[] = []
  const outcomes: Promise<ForwardOutcome>[] = []
  const waiting: (() => void)[] = []
  const requests: IncomingMessage[] = []
  const events = createEvents(createLogger('trace', { write: (line) => log.push(line) }))
  const relays = createRelays({
    connections,
    acquireMs,
    timeouts: { connectMs: timeoutMs, headersMs: timeoutMs, bodyMs: timeoutMs },
    byteBudget: createByteBudget(10_000_000),
    clock: systemClock,
    events,
    uploads: new WeakMap(),
    onFailure: (reason) => events.relayFailed({ reason }),
    onCall: (seen) => calls.push(seen),
    onRefusal: (reason) => refusals.push(reason),
  })
  const server = createServer((request, response) => {
    requests.push(request)
    replaceForwarding(request, { trustedProxies: createAddressList([]) })
    outcomes.push(relays.of(new URL(url)).forward(request, response, { queueKey: soleQueue, ...call }))
    for (const wake of waiting.splice(0)) wake()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    void relays.close()
    server.close()
    server.closeAllConnections()
  })
  const outcomeStarted = async (index: number): Promise<void> => {
    while (outcomes.length <= index) await new Promise<void>((resolve) => waiting.push(resolve))
  }
  const outcome = async (index = 0): Promise<ForwardOutcome> => {
    await outcomeStarted(index)
    return outcomes[index] ?? outcome(index)
  }
  const giveUp = (index: number): AdapterError | undefined => {
    const request = requests[index]
    return request && relays.abandonUpload(request)
  }
  const { port } = server.address() as AddressInfo
  return { port, log, relays, calls, refusals, outcomes, outcome, outcomeStarted, giveUp }
}
