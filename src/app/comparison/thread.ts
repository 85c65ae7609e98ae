import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'

import { AdapterError } from '../../errors.ts'
import type { FromThread, Note, ThreadStart, ToThread } from './messages.ts'
import { runComparison } from './run-comparison.ts'
import { createCaller } from './thread-calls.ts'

// The thread of comparisons: a loop and a heap of its own, so that neither its work nor its collections of garbage hold up a client.

if (parentPort === null) throw new AdapterError('ADP_INTERNAL', 'This file is the thread of comparisons.')
const port = parentPort

const post = (message: FromThread): void => port.postMessage(message)
let notes: Note[] = []
const flush = (): void => {
  if (notes.length > 0) post({ kind: 'notes', notes })
  notes = []
}
const note = (own: Note): void => {
  // One message for what a turn has to say.
  if (notes.push(own) === 1) setImmediate(flush)
}
const caller = createCaller(post)
const start = workerData as ThreadStart
takePriority(start.nice)
const comparison = runComparison(start, caller, note)

port.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'offer':
      comparison.offer(message)
      break
    case 'wrote':
      comparison.wrote(message.writes)
      break
    case 'throttled':
      comparison.throttled(message.partner)
      break
    case 'missed':
      comparison.missed(message.missed)
      break
    case 'settings':
      comparison.use(message.settings)
      break
    case 'result':
      caller.resolve(message.id, message.value)
      break
    case 'failure':
      caller.reject(message.id, message.failure)
      break
    case 'close':
      void close()
  }
})

async function close(): Promise<void> {
  await comparison.close()
  flush()
  post({ kind: 'closed' })
}

/** Where another thread wants the same processor, that one has it. Linux counts threads as processes; elsewhere nothing changes. */
function takePriority(nice: number): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, nice)
  } catch {
    // A container without /proc, or a profile that forbids it: the threads share the processor evenly.
  }
}
