import * as z from 'zod'

import { isPostgresAddress, JOURNAL_ADDRESS } from '../http/address.ts'
import { decodeKey, Secret } from './secret.ts'
import { key, keySecret, timeWithin } from './values.ts'

/** A pattern that editors check. `isAddress` checks the rest of the address. */
const URL_PATTERN = '^(none|sqlite:(?!:memory:$).+|postgres(ql)?://.+)$'
const url = z
  .union(
    [z.string().meta({ pattern: URL_PATTERN }), z.instanceof(Secret)],
    'must be sqlite:<file>, postgres://… or none, or { env: NAME } or { file: path } with such an address',
  )
  .refine(isAddress, JOURNAL_ADDRESS)
  // An address with a password becomes a secret, so that printing the configuration never shows the password.
  .transform((address) =>
    typeof address === 'string' && hasPassword(address) ? new Secret(address) : address,
  )

const TEN_YEARS_MS = 3_660 * 86_400_000
const span = timeWithin(1_000, TEN_YEARS_MS)

/** The id of the entry of `keys` that has no key, and that allows rows that are not encrypted. */
const PLAINTEXT = 'plaintext'

const encryptionKey = z.strictObject({
  id: key(
    'Name of the key. Each encrypted row contains the name of its key.',
    z.string().regex(/^[\w.-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores'),
  ),
  key: key(
    'The key, as 64 hexadecimal digits or as 32 bytes in base64. The entry { id: plaintext } has no key, and every other entry must have one.',
    keySecret.optional(),
  ),
})

export const journalSchema = z
  .strictObject({
    url: key(
      'Address of the journal: sqlite:<file> for one machine, postgres://… for several machines, or none for no journal. The address may be a secret.',
      url.prefault('sqlite:./data/journal.db'),
    ),
    keys: key(
      'Encryption keys. The first key encrypts new rows, and all keys decrypt. A last entry { id: plaintext } accepts rows that were stored before there was a key.',
      z.array(encryptionKey).max(16).default([]),
    ),
    replayForMs: key(
      'Retention of requests and replies, at least 1 s. During this time the adapter answers a resent batch from the journal.',
      span.prefault('24h'),
    ),
    keepRecordsMs: key('Retention of the outcome of each record.', span.prefault('90d')),
    stateDir: key(
      'Folder in which this instance stores its last commit number (high-water file) and the last stages that it has read (stage file). With them the instance detects a journal that lost commits or stages. Only for PostgreSQL: an SQLite journal stores both files beside its database.',
      z.string().min(1).optional(),
    ),
  })
  .superRefine((journal, context) => {
    const refuse = (path: string | (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path: [path].flat(), message })
    for (const [index, { id, key: own }] of journal.keys.entries())
      if (own === undefined && id !== PLAINTEXT) refuse(['keys', index, 'key'], 'is required')
    if (journal.stateDir !== undefined && !isPostgresAddress(journalUrlOf(journal)))
      refuse(
        'stateDir',
        'applies only to a PostgreSQL journal. An SQLite journal stores the high-water file and the stage file beside the database',
      )
    if (journal.keepRecordsMs < journal.replayForMs)
      refuse('keepRecordsMs', 'must not be shorter than replayForMs')
  })

export type JournalConfig = z.infer<typeof journalSchema>

/** Returns the address of the journal in plain text, even if the address is a secret. */
export function journalUrlOf({ url: address }: Pick<JournalConfig, 'url'>): string {
  return address instanceof Secret ? address.reveal() : address
}

export function journalKeysOf({
  keys,
}: Pick<JournalConfig, 'keys'>): readonly { readonly id: string; readonly key: Uint8Array }[] {
  return keys.flatMap(({ id, key: own }) => {
    const bytes = own && decodeKey(own)
    return bytes === undefined ? [] : [{ id, key: bytes }]
  })
}

/** Returns true if `keys` contains the entry `plaintext`, which allows unencrypted rows. */
export function acceptsPlaintext({ keys }: Pick<JournalConfig, 'keys'>): boolean {
  return keys.some(({ id, key: own }) => id === PLAINTEXT && own === undefined)
}

/**
 * Returns true if a value is the address of a journal. Accepts an empty secret, because `resolveSecrets` has already reported its fault.
 */
function isAddress(address: string | Secret): boolean {
  const text = address instanceof Secret ? address.reveal() : address
  if (address instanceof Secret && text === '') return true
  return text === 'none' || /^sqlite:(?!:memory:$)./.test(text) || isPostgresAddress(text)
}

function hasPassword(text: string): boolean {
  if (!isPostgresAddress(text)) return false
  const { password, search } = new URL(text)
  return password !== '' || /password/i.test(search)
}
