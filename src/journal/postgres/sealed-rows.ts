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

/** Writes blobs; credentials replace those that are there. */
export async function writeSealed(
  client: PoolClient,
  into: keyof typeof table,
  rows: readonly SealedRow[],
): Promise<void> {
  if (rows.length === 0) return
  const replace =
    into === 'credentials'
      ? 'on conflict (batch) do update set key_id = excluded.key_id, body = excluded.body'
      : ''
  await client.query({
    name: `journal-${into}`,
    text: `insert into ${table[into]} select * from unnest($1::bigint[], $2::text[], $3::bytea[]) ${replace}`,
    values: [
      rows.map(({ batch }) => batch),
      rows.map(({ keyId }) => keyId),
      rows.map(({ body }) => toBuffer(body)),
    ],
  })
}

/** `pg` writes a Buffer in an array as bytes, and any other view as an object. */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
