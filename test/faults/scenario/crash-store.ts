import { setTimeout as delay } from 'node:timers/promises'

import type { PostgresServer } from '../../support/postgres/postgres-server.ts'

/** Crashes a PostgreSQL again and again, and starts it at once, until it is stopped; then it is up. */
export interface StoreCrashes {
  count(): number
  stop(): Promise<void>
}

/** Lets the server live for `livesMs` each time. */
export function startStoreCrashes(server: PostgresServer, livesMs: number): StoreCrashes {
  const stopping = new AbortController()
  const { signal } = stopping
  let count = 0
  const outlived = (): Promise<boolean> => delay(livesMs, true, { signal }).catch(() => false)
  const run = async (): Promise<void> => {
    while (await outlived()) {
      await server.crash()
      count += 1
      await server.start()
    }
  }
  const running = run()
  return {
    count: () => count,
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
