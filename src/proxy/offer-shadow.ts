import { stageTable } from '../rollout/index.ts'
import type { WriteRequest } from '../writes/index.ts'
import type { CapturedReply } from './captured-reply.ts'
import type { ProxyContext } from './context.ts'
import type { LegacyExchange } from './legacy-exchange.ts'

/** Larger answers to reads are not copied. */
export const MAX_OFFERED_READ_BYTES = 1_048_576

/** True where what V2 serves is offered to the listener of `shadow`. */
export function isOffered({ entry, kind }: LegacyExchange): boolean {
  return entry.stage === 'shadow' && stageTable.shadow[kind].compares !== 'nothing'
}

/** Offers a write that V2 has answered; the client has its reply. */
export function offerWrite(
  { shadow, nowMs }: ProxyContext,
  { client, receivedMs }: LegacyExchange,
  write: { readonly request: WriteRequest; readonly body: Buffer | undefined },
  reply: CapturedReply,
): void {
  const { partner } = client
  shadow.offer({ kind: 'write', ...write, partner, receivedMs, durationMs: nowMs() - receivedMs, reply })
}

/** Offers a read that V2 has answered. */
export function offerRead(
  { shadow, nowMs }: ProxyContext,
  { client, receivedMs, kind, request }: LegacyExchange,
  reply: CapturedReply,
): void {
  if (kind !== 'readFilter' && kind !== 'readKey' && kind !== 'registrations') return
  const { partner } = client
  const { url = '' } = request
  const at = url.indexOf('?')
  const query = at === -1 ? '' : url.slice(at + 1)
  shadow.offer({ kind, query, partner, receivedMs, durationMs: nowMs() - receivedMs, reply })
}
