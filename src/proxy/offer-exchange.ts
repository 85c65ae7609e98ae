import type { OfferedExchange, ServedRecord } from '../compare/live/index.ts'
import { isGenericClient, type PartReply } from '../v2/index.ts'
import type { Plan } from '../writes/index.ts'
import type { ProxyContext } from './context.ts'
import type { ExchangeObserver, Received, Replied } from './exchange.ts'

/** Larger answers are not copied. */
const MAX_READ_BYTES = 1_048_576
const MAX_WRITE_BYTES = 8_388_608

type Comparison = Pick<ProxyContext, 'comparison' | 'nowMs'>

/**
 * Offers an exchange to be compared once its client has the reply, or the keys of a write that is not: a comparison may read one of its
 * marks. Nothing is offered of a client whose credentials no service has accepted.
 */
export function offerExchange(
  context: Comparison,
  exchange: Received,
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  const { request, client, entry, side, kind } = exchange
  const { stage } = entry
  const isRead = kind === 'readFilter' || kind === 'readKey' || kind === 'registrations'
  if (!isRead && kind !== 'batch' && kind !== 'record') return {}
  const isOffered =
    (!isRead || request.method === 'GET') &&
    context.comparison.isWanted({ stage, side }, kind, client.partner)
  if (isOffered)
    return isRead
      ? offerRead(context, exchange, kind, isAccepted)
      : offerWrite(context, exchange, kind, isAccepted)
  return isRead ? {} : noteKeys(context, exchange, isAccepted)
}

function offerRead(
  { comparison, nowMs }: Comparison,
  exchange: Received,
  kind: 'readFilter' | 'readKey' | 'registrations',
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  const { request, target, side } = exchange
  const { accept = '', prefer } = request.headers
  const asked = { query: target.query.slice(1), accept, prefer: [prefer ?? []].flat().join() }
  return {
    copyBytes: MAX_READ_BYTES,
    replied: (replied) => {
      if (replied.kind !== 'read' || !isAccepted()) return
      const { reply } = replied
      comparison.offer({ ...commonOf(exchange), ...asked, kind, served: side, repliedMs: nowMs(), reply })
    },
  }
}

function offerWrite(
  { comparison, nowMs }: Comparison,
  exchange: Received,
  kind: 'batch' | 'record',
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  const parts = new Map<number, PartReply>()
  let settledMs: number | undefined
  const toOffered = (replied: Replied): OfferedExchange | undefined => {
    const common = { ...commonOf(exchange), kind, repliedMs: settledMs ?? nowMs() }
    if (replied.kind === 'relayed') {
      const { form, body, plan, outcome } = replied
      const reply = outcome.kind === 'answered' ? outcome.reply : undefined
      const isGeneric = isGenericClient(exchange.request.headers)
      return reply && { ...common, served: 'v2', request: form, body, keys: keysOf(plan), isGeneric, reply }
    }
    // A batch that came before was offered then.
    if (replied.kind === 'read' || exchange.side === 'v2' || replied.answered.replayed) return undefined
    const { records } = replied.planned.plan
    const accepted = [...parts].flatMap(([position, part]): ServedRecord[] => {
      const planned = records[position]
      return planned?.record === undefined ? [] : [{ record: planned.record, key: planned.key, part }]
    })
    return { ...common, served: 'v3', records: accepted }
  }
  return {
    copyBytes: MAX_WRITE_BYTES,
    settled: (position, part) => {
      // The reply ends after the last part, and a correction may come as soon as it has.
      settledMs = nowMs()
      if (part.status < 300) parts.set(position, part)
    },
    replied: (replied) => {
      const offered = toOffered(replied)
      if (offered !== undefined && isAccepted()) comparison.offer(offered)
    },
  }
}

function noteKeys(
  { comparison }: Comparison,
  { client, entry }: Received,
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  let plan: Plan | undefined
  let isNoted = false
  const note = (): void => {
    if (isNoted || !isAccepted()) return
    isNoted = true
    comparison.wrote(client.partner, entry.stage, () => keysOf(plan))
  }
  return {
    // Before a service has it where that is possible: a comparison may read one of its marks at once.
    decoded: (decoded) => {
      plan = decoded
      note()
    },
    replied: note,
  }
}

function commonOf({ client, entry, unit, receivedMs, target }: Received) {
  const { stage, revision } = entry
  return { client, stage, revision, unit, receivedMs, path: target.rawPath }
}

/** The keys of the records of a write, as far as they are known. */
function keysOf(plan: Plan | undefined): readonly (string | undefined)[] {
  return plan?.records.map(({ key }) => (key === '' ? undefined : key)) ?? []
}
