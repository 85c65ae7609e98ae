import { setFlagsFromString } from 'node:v8'

import { cpuMs, serveCommands } from './child.ts'
import { median } from './rounds.ts'
import { atATime, createPosts, makeBodies } from './v3-posts.ts'

// The peer of the adapter. It posts the same V3 bodies, prepared at its start, with undici's `Pool.request`, and reads each reply.
// Arguments: the port, the number of concurrent requests, the length of a round in ms, and `tuned` for a V8 option of the adapter
// (src/cli/main.ts).

if (process.argv[5] === 'tuned') setFlagsFromString('--no-allocation-site-pretenuring')
const [port, concurrency, durationMs] = process.argv.slice(2).map(Number)
const postOne = createPosts(port ?? 0)
const bodies = makeBodies()

let sent = 0

async function post(): Promise<void> {
  const content = bodies[sent % bodies.length] ?? ''
  sent += 1
  await postOne(content)
}

serveCommands(
  {},
  {
    run: async () => {
      const before = sent
      const start = performance.now()
      const worker = async (): Promise<void> => {
        while (performance.now() - start < (durationMs ?? 1000)) await post()
      }
      await Promise.all(Array.from({ length: concurrency ?? 32 }, worker))
      return { marks: sent - before, ms: performance.now() - start }
    },
    // Posts the records batch by batch. A batch begins when all posts of the previous batch have ended.
    batches: async () => {
      const before = sent
      const batchMs: number[] = []
      const start = performance.now()
      while (performance.now() - start < (durationMs ?? 1000)) {
        const begun = performance.now()
        await atATime(concurrency ?? 16, bodies.length, post)
        batchMs.push(performance.now() - begun)
      }
      return { marks: sent - before, ms: performance.now() - start, batchMs: median(batchMs) }
    },
    cpu: () => ({ cpuMs: cpuMs() }),
  },
)
