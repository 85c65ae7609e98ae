import { headerOf, isGeneric } from '../recording/exchange.ts'
import { listRecordings, readRecording } from '../recording/index.ts'
import { defaultBatchLimits } from '../../v2/index.ts'
import { addCounts } from '../../rollout/index.ts'
import type { Learned } from './learned.ts'
import { observeExchange } from './observe-exchange.ts'

/** Counts what recorded replies of V2 show; those for which V3 served are the adapter's own. `key` opens encrypted ones. Errors: those of `listRecordings` and `readRecording`. */
export async function learnRecordings(folder: string, key: Uint8Array | undefined): Promise<Learned> {
  const learned = new Map<string, number>()
  for (const one of await listRecordings(folder)) {
    const { exchange } = await readRecording(one, key)
    if (exchange.served === 'v3') continue
    const { kind, contentType, body, reply } = exchange
    const names = observeExchange(
      {
        kind: kind === 'batch' || kind === 'record' ? kind : 'read',
        request: { contentType, isGeneric: isGeneric(exchange), body },
        reply: {
          status: reply.status,
          contentType: headerOf(reply.headers, 'content-type'),
          body: reply.body,
        },
      },
      defaultBatchLimits,
    )
    addCounts(
      learned,
      names.map((name) => [name, 1] as const),
    )
  }
  return learned
}
