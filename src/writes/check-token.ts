import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import type { StoredBatch, StoredRecord } from '../journal/index.ts'
import { isSameCredentials, ownDenialOf, type TokenVerdict } from '../partners/credentials.ts'
import type { Authorisation } from '../partners/partner.ts'
import { toReadBackFilter } from '../translate/index.ts'
import type { V3Record } from '../v3/index.ts'
import type { WriteContext } from './context.ts'
import type { Plan } from './plan.ts'
import { isDenial, toDenialError } from './settlement-policy.ts'
import { readPaced } from './write-session.ts'

/**
 * Verifies that a client may receive V3's stored replies to a batch. V3 must have accepted the client's token for the batch before, or must
 * accept the token now for a read of one mark of the batch. Returns true once V3 has accepted the token, and false if no check is needed
 * yet. Throws `ADP_TOKEN` or `ADP_FORBIDDEN` with V3's message if V3 denies the token, `ADP_FORBIDDEN` if V3 does not show the mark to the
 * token, and `ADP_OUTCOME_UNKNOWN` if V3 cannot be read in time.
 */
export async function checkToken(
  context: WriteContext,
  authorisation: Authorisation,
  stored: StoredBatch,
  plan: Plan,
): Promise<boolean> {
  if (!needsCheck(context, authorisation, stored, plan)) return false
  const ask = (): Promise<TokenVerdict> => askService(context, authorisation, stored.records, plan)
  const verdict = await context.verdicts.of(stored.batch, authorisation.identity, ask)
  if (verdict !== 'accepted') throw new AdapterError(verdict.code, verdict.message)
  context.accepted.accept(authorisation)
  if (context.orphans.has(stored.batch)) context.accepted.setSender(stored.batch, authorisation.client)
  return true
}

/** Returns true if V3 must be asked about the token. If the adapter obtains its own tokens, the client's subscription key is enough. */
function needsCheck(
  { accepted }: WriteContext,
  { partner, client }: Authorisation,
  { batch, records }: StoredBatch,
  { outcomesShown, records: planned }: Plan,
): boolean {
  if (partner.tokens !== undefined) return false
  const sender = accepted.senderOf(batch)
  // An open record that is sent with this client's credentials needs no check, because V3 judges the credentials when it gets the record.
  const isSender = sender !== undefined && isSameCredentials(sender, client)
  return records.some(
    (record) =>
      planned[record.position]?.record !== undefined &&
      (record.state === 'open' ? !isSender : outcomesShown && isFromService(record)),
  )
}

/** Returns true for a record whose part of the reply contains data from the service, which only an accepted token may receive. */
function isFromService({ state, superseded }: StoredRecord): boolean {
  return state === 'confirmed' || (state === 'refused' && !superseded)
}

/** Reads a mark of the batch with the client's token. Repeats the read, because a read may be stale and its connection may break. */
async function askService(
  context: WriteContext,
  authorisation: Authorisation,
  records: readonly StoredRecord[],
  plan: Plan,
): Promise<TokenVerdict> {
  const { partner } = authorisation
  const { clock } = context
  const endMs = clock.nowMs() + partner.budgetMs
  const posted = ({ position }: StoredRecord): V3Record | undefined => plan.records[position]?.record
  const confirmed = records.find((one) => one.state === 'confirmed' && posted(one) !== undefined)
  const readable = confirmed ?? records.find((one) => posted(one) !== undefined)
  const record = readable === undefined ? undefined : posted(readable)
  if (record === undefined) return 'accepted'
  const query = `$filter=${encodeURIComponent(toReadBackFilter(record))}`
  let wasRead = false
  for (const pauseMs of [0, ...partner.readBackAfterMs]) {
    if (pauseMs > 0) await new Promise<void>((resolve) => void clock.after(pauseMs, resolve))
    const leftMs = endMs - clock.nowMs()
    if (leftMs <= 0) throw unchecked()
    const outcome = await readPaced(context, authorisation, query, leftMs)
    if (outcome.kind === 'refused' && isDenial(outcome.error)) {
      const own = ownDenialOf(context.accepted, partner, outcome.error)
      // V3 denied the adapter's own credentials. Throwing keeps this error from being stored as the verdict on the client's token.
      if (own !== undefined) throw own
      return toDenialError(outcome.error)
    }
    wasRead = outcome.kind === 'read'
    if (outcome.kind !== 'read') continue
    if (confirmed === undefined || hasRow(outcome.json, record)) return 'accepted'
  }
  if (!wasRead) throw unchecked()
  return new AdapterError(
    'ADP_FORBIDDEN',
    'The result of this batch is stored, but the service does not show its marks to this token. This copy was not sent. Resend the batch with a token of the client that first sent it.',
  )
}

const unchecked = (): AdapterError =>
  new AdapterError(
    'ADP_OUTCOME_UNKNOWN',
    'The result of this batch is stored, but the service could not confirm that this token may receive it. This copy was not sent. Resend the same batch later.',
  )

const idSchema = z.object({ ExternalID: z.string().toLowerCase() })
const rowSchema = z.object({ Attendee: idSchema, Event: idSchema })
const pageSchema = z.object({ value: z.array(rowSchema.optional().catch(undefined)) })

/** Returns true if the response to a read has a row with the learner and event of a record. */
export function hasRow(answer: unknown, { Attendee, Event }: V3Record): boolean {
  const rows = pageSchema.safeParse(answer).data?.value ?? []
  const [learner, event] = [Attendee.ExternalID.toLowerCase(), Event.ExternalID.toLowerCase()]
  return rows.some((row) => row?.Attendee.ExternalID === learner && row.Event.ExternalID === event)
}
