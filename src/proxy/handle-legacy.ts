import { AdapterError } from '../errors.ts'
import { isWriteKind } from '../rollout/index.ts'
import { showsAcceptance } from './acceptance.ts'
import type { ProxyContext } from './context.ts'
import { handleRelayedWrite } from './handle-relayed-write.ts'
import type { LegacyExchange } from './legacy-exchange.ts'
import { V2_LINK_SEGMENT } from './next-link-side.ts'
import { isV2Offered, MAX_OFFERED_READ_BYTES, offerV2Read } from './offer-exchange.ts'
import { serviceRoot } from './requested-address.ts'
import type { ForwardCall } from './forwarder.ts'

/** Sends a request on to V2, and its reply back, both as they are. Error: `ADP_UPSTREAM_UNAVAILABLE` where there is no V2. */
export function handleLegacy(context: ProxyContext, exchange: LegacyExchange): Promise<void> {
  const { client, entry, kind } = exchange
  const { v2 } = client.partner
  if (v2 === undefined)
    throw new AdapterError(
      'ADP_UPSTREAM_UNAVAILABLE',
      'V2 serves this partner, and no address of V2 is configured. Nothing was sent.',
    )
  const call = toForwardCall(context, exchange)
  return isWriteKind(kind) && entry.known !== 'nothing'
    ? handleRelayedWrite(context, exchange, v2, call)
    : relay(context, exchange, v2, call)
}

async function relay(
  context: ProxyContext,
  exchange: LegacyExchange,
  v2: URL,
  call: ForwardCall,
): Promise<void> {
  const { request, response } = exchange
  const isOffered = isV2Offered(context, exchange)
  const copied = isOffered ? { ...call, captureBytes: MAX_OFFERED_READ_BYTES } : call
  const outcome = await context.relays.of(v2).forward(request, response, copied)
  if (isOffered && outcome.kind === 'answered' && outcome.reply !== undefined)
    offerV2Read(context, exchange, outcome.reply)
}

/** Next links carry the marker of their side: V2 also serves the page that they lead to. */
function toForwardCall(
  { queueKeys, rewriteLinks, comparison }: ProxyContext,
  { client, request, copy, entry }: LegacyExchange,
): ForwardCall {
  const base = serviceRoot(request, '')
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  return {
    queueKey: queueKeys.of(client),
    links: rewriteLinks && isRead ? [{ from: '', to: base, nextTo: base + V2_LINK_SEGMENT }] : undefined,
    onReplyHead: ({ status }) => {
      copy?.servedBy('v2')
      if (showsAcceptance(request, status)) queueKeys.accept(client)
      if (status === 429) comparison.throttled(client.partner, entry.stage)
    },
  }
}
