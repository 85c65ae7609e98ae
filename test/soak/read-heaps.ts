import { once } from 'node:events'

import { WebSocket } from 'undici'

/** The heaps of all threads of a process with their buffers, in MiB. */
export interface Heaps {
  /** The memory that V8 has taken from the system, including garbage and free pages. */
  readonly committedMiB: number
  /** The size of the heap after a full collection. It grows if the program leaks memory. */
  readonly liveMiB: number
}

type Call = (method: string, params?: object) => Promise<Answer>
interface Answer {
  readonly result: { readonly result: { readonly value: number } }
}
type Message = Answer & {
  readonly id?: number
  readonly method?: string
  readonly params: { readonly sessionId: string; readonly message: string }
}

const read = (member: 'total_heap_size' | 'used_heap_size'): string =>
  `(({ ${member}: own, external_memory: buffers }) => (own + buffers) / 1048576)(process.getBuiltinModule('node:v8').getHeapStatistics())`

/**
 * Reads the heaps of a process through its inspector, before and after a garbage collection in each thread. The process needs
 * `--expose-gc`.
 */
export async function readHeaps(inspectorUrl: string): Promise<Heaps> {
  const socket = new WebSocket(inspectorUrl)
  const waiting = new Map<number, (answer: Answer) => void>()
  let ids = 0
  const ask = (send: (id: number) => void): Promise<Answer> =>
    new Promise((resolve) => {
      waiting.set(++ids, resolve)
      send(ids)
    })
  const call: Call = (method, params = {}) => ask((id) => socket.send(JSON.stringify({ id, method, params })))
  const threads = [call]
  const receive = ({ id, method, params, ...answer }: Message): void => {
    if (method === 'NodeWorker.receivedMessageFromWorker') receive(JSON.parse(params.message) as Message)
    if (method === 'NodeWorker.attachedToWorker')
      threads.push((own, options = {}) =>
        ask((id) => {
          const message = JSON.stringify({ id, method: own, params: options })
          void call('NodeWorker.sendMessageToWorker', { sessionId: params.sessionId, message })
        }),
      )
    if (id === undefined) return
    waiting.get(id)?.(answer)
    waiting.delete(id)
  }
  socket.addEventListener('message', ({ data }) => receive(JSON.parse(String(data)) as Message))
  await once(socket, 'open')
  await call('NodeWorker.enable', { waitForDebuggerOnStart: false })
  const sum = async (expression: string): Promise<number> => {
    const answers = threads.map((own) => own('Runtime.evaluate', { expression, returnByValue: true }))
    return (await Promise.all(answers)).reduce((total, { result }) => total + result.result.value, 0)
  }
  const committedMiB = await sum(read('total_heap_size'))
  // Objects that the first collection finalises are freed by the second. The inspector's `collectGarbage` would repeat until nothing is
  // left, and clients would wait for it.
  for (let round = 0; round < 2; round += 1) await sum('gc() ?? 0')
  const liveMiB = await sum(read('used_heap_size'))
  socket.close()
  return { committedMiB, liveMiB }
}
