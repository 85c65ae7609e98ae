import type { IncomingMessage } from 'node:http'

import type { OfferedExchange, OfferedReply, ServedRecord } from '../compare/live/index.ts'
import type { Client } from '../partners/partner.ts'
import type { Side, StageEntry } from '../rollout/index.ts'
import { isGenericClient } from '../v2/index.ts'
import type { OpenReply, PlannedRequest, WriteRequest } from '../writes/index.ts'
import type { ProxyContext } from './context.ts'
import type { Exchange } from './exchange.ts'
import type { LegacyExchange } from './legacy-exchange.ts'

/** Larger answers to reads are not copied. */
export const MAX_OFFERED_READ_BYTES = 1_048_576

/** True where an exchange that V2 serves is to be compared. */
export function isV2Offered({ comparison }: ProxyContext, exchange: LegacyExchange): boolean {
  const { entry, kind, client, request } = exchange
  return isOffered(comparison, { stage: entry.stage, side: 'v2' }, kind, client, request)
}

/** True where an exchange that V3 serves is to be compared. */
export function isV3Offered({ comparison }: ProxyContext, exchange: Exchange): boolean {
  const { entry, kind, authorisation, request } = exchange
  return isOffered(comparison, { stage: entry.stage, side: 'v3' }, kind, authorisation, request)
}

function isOffered(
  comparison: ProxyContext['comparison'],
  entry: Pick<StageEntry, 'side' | 'stage'>,
  kind: Exchange['kind'],
  { partner }: Client,
  { method }: IncomingMessage,
): boolean {
  const isRead = kind === 'readFilter' || kind === 'readKey' || kind === 'registrations'
  return (!isRead || method === 'GET') && comparison.isWanted(entry, kind, partner)
}

/** Offers what is to be compared; nothing of a client whose credentials no service has accepted. */
function offer({ comparison, queueKeys }: ProxyContext, offered: OfferedExchange): void {
  if (queueKeys.of(offered.client).isAccepted()) comparison.offer(offered)
}

/** Offers a write that V2 has answered; the client has its reply. */
export function offerWrite(
  context: ProxyContext,
  exchange: LegacyExchange,
  write: {
    readonly request: WriteRequest
    readonly body: Buffer | undefined
    readonly keys: readonly (string | undefined)[]
  },
  reply: OfferedReply,
): void {
  const { accept = '', prefer } = exchange.request.headers
  // V2 saw them: they decide the form of the reply to a single record.
  const asked = write.request.kind === 'record' ? { accept, prefer: [prefer ?? []].flat().join() } : {}
  offer(context, {
    ...common(context, exchange, exchange.client),
    ...write,
    kind: write.request.kind,
    served: 'v2',
    path: exchange.path,
    request: { ...write.request, ...asked },
    isGeneric: isGenericClient(exchange.request.headers),
    reply,
  })
}

/** Offers a read that V2 has answered. */
export function offerV2Read(context: ProxyContext, exchange: LegacyExchange, reply: OfferedReply): void {
  const { url = '' } = exchange.request
  const at = url.indexOf('?')
  offerRead(context, exchange, exchange.client, {
    served: 'v2',
    path: exchange.path,
    query: at === -1 ? '' : url.slice(at + 1),
    reply,
  })
}

/** Offers a read that V3 has answered; without a reply, V3 is asked for it again. */
export function offerV3Read(
  context: ProxyContext,
  exchange: Exchange,
  reply: OfferedReply | undefined,
): void {
  const { rawPath, query } = exchange.target
  offerRead(context, exchange, exchange.authorisation, {
    served: 'v3',
    path: rawPath,
    query: query.slice(1),
    reply,
  })
}

function offerRead(
  context: ProxyContext,
  exchange: LegacyExchange | Exchange,
  client: Client,
  read: {
    readonly served: Side
    readonly path: string
    readonly query: string
    readonly reply: OfferedReply | undefined
  },
): void {
  const { kind, request } = exchange
  if (kind !== 'readFilter' && kind !== 'readKey' && kind !== 'registrations') return
  const { accept = '', prefer } = request.headers
  offer(context, {
    ...common(context, exchange, client),
    ...read,
    kind,
    accept,
    prefer: [prefer ?? []].flat().join(),
  })
}

/** The records of a write that V3 serves, while their parts come. */
export interface ServedOffer {
  /** The reply of the client, of which the parts are noted. */
  readonly open: (openReply: OpenReply) => OpenReply
  /** Offers what V3 has accepted; a batch that came before was offered then. */
  offer(plan: PlannedRequest['plan'], replayed: boolean): void
}

/** Notes the parts of a write that is to be compared. */
export function noteServed(context: ProxyContext, exchange: Exchange): ServedOffer {
  const parts = new Map<number, ServedRecord['part']>()
  let endedMs: number | undefined
  return {
    open:
      (openReply) =>
      (...form) => {
        const reply = openReply(...form)
        return {
          settle: (index, part) => {
            if (part.status < 300) parts.set(index, part)
            reply.settle(index, part)
          },
          begin: () => reply.begin(),
          hasLeft: () => reply.hasLeft(),
          end: () => {
            // Its outcomes are made durable after that: a correction may come meanwhile.
            endedMs = context.nowMs()
            return reply.end()
          },
        }
      },
    offer: ({ records }, replayed) => {
      const { kind, target, authorisation } = exchange
      if (replayed || (kind !== 'batch' && kind !== 'record')) return
      const accepted = [...parts].flatMap(([index, part]): ServedRecord[] => {
        const planned = records[index]
        return planned?.record === undefined ? [] : [{ record: planned.record, key: planned.key, part }]
      })
      offer(context, {
        ...common(context, exchange, authorisation),
        repliedMs: endedMs ?? context.nowMs(),
        kind,
        served: 'v3',
        path: target.rawPath,
        records: accepted,
      })
    },
  }
}

function common(
  { nowMs }: ProxyContext,
  { entry, unit, receivedMs }: LegacyExchange | Exchange,
  client: Client,
) {
  const { stage, revision } = entry
  return { client, stage, revision, unit, receivedMs, repliedMs: nowMs() }
}
