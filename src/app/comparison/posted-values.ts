import type { OfferedExchange, OfferedReply } from '../../compare/live/index.ts'
import type { Config } from '../../config/index.ts'
import type { Client, Partner } from '../../partners/partner.ts'
import type { PostedClient, PostedExchange, PostedPartner } from './messages.ts'

/** Partners of a configuration as plain values, with the rules of their own. */
export function toPostedPartners(
  partners: readonly Partner[],
  config: Pick<Config, 'partners'>,
): readonly PostedPartner[] {
  const rules = new Map(config.partners.map(({ id, compare }) => [id, compare.rules]))
  return partners.map((partner) => {
    const { v2, ...own } = partner
    const rulesOf = rules.get(own.id) ?? []
    return { ...own, v2: v2?.href, rules: rulesOf, tokens: undefined, subscriptionKey: undefined }
  })
}

/** A partner in the thread: its keys and tokens are asked for. */
export function fromPostedPartner({ v2, ...own }: PostedPartner): Partner {
  return { ...own, v2: v2 === undefined ? undefined : new URL(v2) }
}

/** A client with the id of its partner. */
export const toPostedClient = ({ partner, client, owner, identity }: Client): PostedClient => ({
  partner: partner.id,
  client: { authorization: client.authorization, subscriptionKey: client.subscriptionKey },
  owner,
  identity,
})

/** An exchange for the thread, and the memory that goes over to it. Bodies are copied: others may hold the same memory. */
export function toPostedExchange(exchange: OfferedExchange): {
  readonly exchange: PostedExchange
  readonly transfer: readonly ArrayBuffer[]
} {
  const transfer: ArrayBuffer[] = []
  const own = (bytes: Buffer | undefined): Buffer | undefined => {
    if (bytes === undefined) return undefined
    const copy = new ArrayBuffer(bytes.length)
    const view = Buffer.from(copy)
    bytes.copy(view)
    transfer.push(copy)
    return view
  }
  const reply = <Given extends OfferedReply | undefined>(given: Given) =>
    given === undefined ? given : { ...given, body: own(given.body) }
  const client = toPostedClient(exchange.client)
  if ('records' in exchange) return { exchange: { ...exchange, client }, transfer }
  if ('request' in exchange)
    return {
      exchange: {
        ...exchange,
        client,
        body: own(exchange.body),
        reply: { ...exchange.reply, body: own(exchange.reply.body) },
      },
      transfer,
    }
  return { exchange: { ...exchange, client, reply: reply(exchange.reply) }, transfer }
}

/** The exchange as the thread compares it. */
export function fromPostedExchange(exchange: PostedExchange, partner: Partner): OfferedExchange {
  const client: Client = { ...exchange.client, partner }
  if ('records' in exchange) return { ...exchange, client }
  if ('request' in exchange)
    return { ...exchange, client, body: toBuffer(exchange.body), reply: toReply(exchange.reply) }
  return { ...exchange, client, reply: exchange.reply && toReply(exchange.reply) }
}

const toReply = (reply: OfferedReply): OfferedReply => ({ ...reply, body: toBuffer(reply.body) })

/** What was posted as a buffer arrives as plain bytes. */
function toBuffer(bytes: Uint8Array | undefined): Buffer | undefined {
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Microseconds of a clock that all threads share. */
export const nowMicros = (): number => Number(process.hrtime.bigint() / 1_000n)
