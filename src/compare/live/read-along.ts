import { AdapterError, errorRules } from '../../errors.ts'
import type { Slices } from '../../http/slices.ts'
import { type ReadPlanner, toV3RegistrationQuery } from '../../translate/index.ts'
import { type BatchLimits, decodeBatchReply } from '../../v2/index.ts'
import { planWrites } from '../../writes/index.ts'
import type { OfferedExchange, OfferedRead, OfferedReply, OfferedWrite } from './offered-exchange.ts'

/** What of an exchange could not be read, decoded or translated, as counts. */
export interface ReadAlong {
  /** Records of a write, each as V3 would have been sent it or refused. */
  readonly records: number
  /** 1: the adapter would have refused the request as a whole. */
  readonly requests: number
  /** Records that the adapter would have refused by itself. */
  readonly refused: number
  /** Members of records that V3 would not have been sent. */
  readonly fields: number
  /** 1: V2's reply is none that the adapter knows. */
  readonly replies: number
}

export interface ReadAlongOptions {
  readonly limits: () => BatchLimits
  readonly planner: ReadPlanner
  readonly open: () => Slices
}

/** Creates the listener of `shadow`: it decodes and translates what V2 served as if V3 had, sends nothing, and says what it could not read. */
export function createReadAlong(
  options: ReadAlongOptions,
): (exchange: OfferedExchange) => Promise<ReadAlong> {
  return (exchange) =>
    exchange.kind === 'write' ? readWrite(exchange, options) : Promise.resolve(readRead(exchange, options))
}

async function readWrite(
  { request, body, partner, receivedMs, reply }: OfferedWrite,
  { limits, open }: ReadAlongOptions,
): Promise<ReadAlong> {
  const nothing = { records: 0, refused: 0, fields: 0 }
  if (body === undefined) return { ...nothing, requests: 1, replies: 0 }
  try {
    const plan = await planWrites(request, body, partner, receivedMs, limits(), open())
    const { records, unmappedFields, outcomesShown } = plan
    const parts = outcomesShown && request.kind === 'batch' ? records.length : undefined
    return {
      records: records.length,
      requests: 0,
      refused: records.filter(({ faults }) => faults !== undefined).length,
      fields: unmappedFields,
      replies: isWriteReply(reply, parts) ? 0 : 1,
    }
  } catch (cause) {
    expectRequestError(cause)
    // V2 may well refuse it too: then its reply is as it should be.
    return { ...nothing, requests: reply.status >= 400 ? 0 : 1, replies: 0 }
  }
}

function readRead({ kind, query, partner, reply }: OfferedRead, { planner }: ReadAlongOptions): ReadAlong {
  const replies = reply.status >= 400 || isJson(reply) ? 0 : 1
  const nothing = { records: 0, refused: 0, fields: 0, replies }
  try {
    // A page that a link leads to says nothing of a query.
    if (kind === 'registrations') toV3RegistrationQuery(query)
    else if (kind === 'readFilter' && planner.tokenOf(query) === undefined) planner.plan(query, partner.reads)
    return { ...nothing, requests: 0 }
  } catch (cause) {
    expectRequestError(cause)
    return { ...nothing, requests: reply.status >= 400 ? 0 : 1 }
  }
}

/** `parts`: how many a batch reply must have; undefined: the reply stands for the whole request. */
function isWriteReply(reply: OfferedReply, parts: number | undefined): boolean {
  if (reply.status >= 400 || parts === undefined) return true
  if (reply.body === undefined || isEncoded(reply)) return false
  try {
    return decodeBatchReply(reply.body, fieldOf(reply, 'content-type')).length === parts
  } catch (cause) {
    expectRequestError(cause)
    return false
  }
}

function isJson(reply: OfferedReply): boolean {
  if (reply.status === 204) return true
  if (reply.body === undefined || isEncoded(reply)) return false
  try {
    const value: unknown = JSON.parse(reply.body.toString('utf8'))
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}

const isEncoded = (reply: OfferedReply): boolean => fieldOf(reply, 'content-encoding') !== undefined

function fieldOf({ fields }: OfferedReply, name: string): string | undefined {
  const at = fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === name)
  return at === -1 ? undefined : fields[at + 1]
}

function expectRequestError(cause: unknown): void {
  if (!(cause instanceof AdapterError) || errorRules[cause.code].class !== 'request') throw cause
}
