import { subscribe } from 'node:diagnostics_channel'
import { syncBuiltinESMExports } from 'node:module'
import worker from 'node:worker_threads'

import { type Failpoint, type FailpointKind, failpointVariable } from './failpoint.ts'

// This module is loaded with --import into the built program. It kills or stops the program at one chosen moment.

/** The diagnostics channels on which undici reports each moment of a request and its reply. */
const requests: readonly [channel: string, kind: FailpointKind][] = [
  ['create', 'beforeSend'],
  ['bodySent', 'afterSend'],
  ['headers', 'answerHead'],
  ['trailers', 'answerEnd'],
]
const text = process.env[failpointVariable]
if (text !== undefined && text !== '') {
  const failpoint = JSON.parse(text) as Failpoint
  let count = 0
  const hit = (kind: FailpointKind): void => {
    if (kind !== failpoint.kind) return
    count += 1
    if (count !== failpoint.nth) return
    if (failpoint.signal === 'SIGSTOP' && failpoint.store === 'sqlite') finishTransactions()
    process.kill(process.pid, failpoint.signal ?? 'SIGKILL')
  }
  if (failpoint.kind === 'beforeCommit' || failpoint.kind === 'afterCommit') {
    if (failpoint.store === 'sqlite') (await import('./watch-sqlite.ts')).watchSqlite(hit)
    else (await import('./watch-postgres.ts')).watchPostgres(hit)
    loadIntoThreads()
  } else {
    for (const [name, kind] of requests) subscribe(`undici:request:${name}`, () => hit(kind))
  }
}

/**
 * Blocks this thread while the journal's thread finishes its work. A process that is stopped inside a transaction holds the lock on the
 * file, so that no other instance could take over.
 */
function finishTransactions(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
}

/** Makes every thread load this file, although the journal starts its thread without the arguments of the process. */
function loadIntoThreads(): void {
  const Original = worker.Worker
  worker.Worker = class extends Original {
    constructor(file: string | URL, options: worker.WorkerOptions = {}) {
      super(file, { ...options, execArgv: ['--import', import.meta.url] })
    }
  }
  syncBuiltinESMExports()
}
