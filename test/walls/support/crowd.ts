import { setTimeout as delay } from 'node:timers/promises'

import { expect } from 'vitest'

import { RawClient } from '../../support/raw-client.ts'
import type { Adapter, Reply } from '../../support/start-adapter.ts'

/** Returns the headers of a client that is recognised by its key. */
export function client(key: string, token = 'good'): Record<string, string> {
  return { 'Ocp-Apim-Subscription-Key': key, Authorization: `bearer ${token}` }
}

/** Returns the bytes of a request of a client. `lines` are additional headers, each with its line end. */
export function requestOf(start: string, headers: Record<string, string>, lines = '', body = ''): string {
  const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${start} HTTP/1.1\r\nHost: adapter.test\r\n${own.join('')}${lines}\r\n${body}`
}

export function crowd(adapter: Adapter, count: number, bytes: string): Promise<RawClient[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const one = await RawClient.open(adapter.port)
      one.send(bytes)
      return one
    }),
  )
}

/** Returns the sum of a gauge or counter of the adapter over all samples that have these labels. */
export async function metric(
  adapter: Adapter,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  const snapshot = (await adapter.app.metrics()) as {
    readonly name: string
    readonly values: readonly { readonly value: number; readonly labels: Record<string, unknown> }[]
  }[]
  const values = snapshot.find((one) => one.name === `markbridge_${name}`)?.values ?? []
  const wanted = Object.entries(labels)
  return values
    .filter((one) => wanted.every(([label, value]) => one.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0)
}

/** Resolves once this many requests are being handled. */
export async function underWay(adapter: Adapter, count: number): Promise<void> {
  while ((await metric(adapter, 'in_flight_requests')) < count) await delay(5)
}

/**
 * Returns the reply, and fails the test if the reply took 5 s or longer. A reply that waited for the crowd would take at least as long as
 * the crowd stays, ten seconds by default.
 */
export async function timed(reply: Promise<Reply>): Promise<Reply> {
  const startedMs = performance.now()
  const done = await reply
  expect(performance.now() - startedMs).toBeLessThan(5_000)
  return done
}
