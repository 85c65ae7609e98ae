import type { PoolClient } from 'pg'

import type { Sealed } from '../store/seal.ts'

/** A blob of a batch. */
export interface SealedRow extends Sealed {
  readonly batch: number
}

const table = {
  payload: 'journal_payloads (batch, key_id, body)',
  credentials: 'journal_credentials (batch, key_id, body)',
  answers: 'journal_answers (batch, key_id, body)',
} as const

/** `pg` writes the bytes of an array as text, two digits each; larger blobs go one by one, as they are. */
const LARGE_BYTES = 65_536

/** Writes blobs; credentials replace those that are there. */
export async function writeSealed(
  client: PoolClient,
  into: keyof typeof table,
  rows: readonly SealedRow[],
): Promise<void> {
  const replace =
    into === 'credentials'
      ? 'on conflict (batch) do update set key_id = excluded.key_id, body = excluded.body'
      : ''
  const [large, small] = [rows.filter(isLarge), rows.filter((row) => !isLarge(row))]
  for (const { batch, keyId, body } of large)
    await client.query({
      name: `journal-large-${into}`,
      text: `insert into ${table[into]} values ($1, $2, $3) ${replace}`,
      values: [batch, keyId, toBuffer(body)],
    })
  if (small.length === 0) return
  await client.query({
    name: `journal-${into}`,
    text: `insert into ${table[into]} select * from unnest($1::bigint[], $2::text[], $3::bytea[]) ${replace}`,
    values: [
      small.map(({ batch }) => batch),
      small.map(({ keyId }) => keyId),
      small.map(({ body }) => toBuffer(body)),
    ],
  })
}

const isLarge = ({ body }: SealedRow): boolean => body.length >= LARGE_BYTES

/** `pg` writes a Buffer in an array as bytes, and any other view as an object. */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
