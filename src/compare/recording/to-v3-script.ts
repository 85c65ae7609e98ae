import { AdapterError } from '../../errors.ts'
import type { Slices } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import { noBatchLimits } from '../../v2/index.ts'
import { encodeRecord } from '../../v3/record.ts'
import { planWrites } from '../../writes/index.ts'
import type { Exchange } from './exchange.ts'
import { toV3Responses } from './to-v3-responses.ts'
import { toWriteRequest } from './to-write-request.ts'

/** What V3 gets for a recorded write, and what it answers: JSON texts, by position, as test cases of `fixtures/` have them. */
export interface V3Script {
  /** With `{{now}}` for the time of receipt. */
  readonly requests: readonly string[]
  /** Undefined: the reply to the client does not say. */
  readonly responses: readonly string[] | undefined
}

const NOW = '{{now}}'
/** The cost of a record in bytes of a batch that is decoded. */
const ENCODE_WORK = 2_048

/** Undefined for a read, and for a request that cannot be decoded. */
export async function toV3Script(
  exchange: Exchange,
  partner: Partner,
  slices: Slices,
): Promise<V3Script | undefined> {
  const { kind, body, receivedMs } = exchange
  if (kind !== 'batch' && kind !== 'record') return undefined
  const request = toWriteRequest(exchange, kind, partner)
  const plan = await planWrites(request, body, partner, receivedMs, noBatchLimits, slices).catch(undecodable)
  if (plan === undefined) return undefined
  if (!plan.outcomesShown && partner.mismatch === 'drop') return { requests: [], responses: undefined }
  const ownTime = new Date(receivedMs).toISOString()
  await slices.next()
  const requests: string[] = []
  for (const { record } of plan.records) {
    if (record === undefined) continue
    const isOwn = record.RecordedOn === ownTime
    requests.push(encodeRecord(isOwn ? { ...record, RecordedOn: NOW } : record, partner.bodyProfile))
    if (slices.spend(ENCODE_WORK)) await slices.next()
  }
  return { requests, responses: await toV3Responses(plan, exchange, slices) }
}

function undecodable(cause: unknown): undefined {
  if (!(cause instanceof AdapterError)) throw cause
}
