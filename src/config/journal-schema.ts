import * as z from 'zod'

import { decodeKey, keySecret } from './key-secret.ts'
import { Secret } from './secret.ts'

/** For editors, which know no more of an address: `isAddress` decides. */
const URL_PATTERN = '^(none|sqlite:(?!:memory:$).+|postgres(ql)?://.+)$'
const url = z
  .union(
    [z.string().meta({ pattern: URL_PATTERN }), z.instanceof(Secret)],
    'must be sqlite:<file>, postgres://… or none, or { env: NAME } or { file: path } with such an address',
  )
  .refine(isAddress, 'must be sqlite:<file>, postgres://<host>/<database> or none')
  // Printing the configuration shows no password, wherever it came from.
  .transform((address) =>
    typeof address === 'string' && hasPassword(address) ? new Secret(address) : address,
  )

const hours = (n: number): number => n * 3_600_000
const span = z
  .int()
  .positive()
  .max(hours(24 * 3_660))

/** Where writes are kept before they are sent, and for how long. */
export const journalSchema = z
  .strictObject({
    url: url.default('sqlite:./data/journal.db'),
    keys: z
      .array(
        z.strictObject({
          id: z
            .string()
            .regex(/^[\w.-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores'),
          key: keySecret,
        }),
      )
      .max(16)
      .default([]),
    replayForMs: span.default(hours(24)),
    keepPayloadsMs: span.default(hours(7 * 24)),
    keepRecordsMs: span.default(hours(90 * 24)),
    plaintext: z.enum(['accept', 'refuse']).default('refuse'),
    markFile: z.string().min(1).optional(),
    leaseMs: z.int().min(1_000).max(600_000).default(10_000),
  })
  .superRefine((journal, context) => {
    if (journal.markFile !== undefined && !isPostgres(journalUrlOf(journal))) {
      const message = 'is for a PostgreSQL journal: an SQLite journal keeps its mark beside its file'
      context.addIssue({ code: 'custom', path: ['markFile'], message })
    }
    const order = ['replayForMs', 'keepPayloadsMs', 'keepRecordsMs'] as const
    order.slice(1).forEach((longer, index) => {
      const shorter = order[index] ?? 'replayForMs'
      if (journal[longer] >= journal[shorter]) return
      context.addIssue({ code: 'custom', path: [longer], message: `must not be shorter than ${shorter}` })
    })
  })

/** The journal of a checked configuration. */
export type JournalConfig = z.infer<typeof journalSchema>

/** The address of the journal, secret or not. */
export function journalUrlOf({ url: address }: Pick<JournalConfig, 'url'>): string {
  return address instanceof Secret ? address.reveal() : address
}

/** The keys as bytes. */
export function journalKeysOf({
  keys,
}: JournalConfig): readonly { readonly id: string; readonly key: Uint8Array }[] {
  return keys.flatMap(({ id, key: secret }) => {
    const bytes = decodeKey(secret)
    return bytes === undefined ? [] : [{ id, key: bytes }]
  })
}

/** The fault of an empty secret was reported when it was resolved. */
function isAddress(address: string | Secret): boolean {
  const text = address instanceof Secret ? address.reveal() : address
  if (address instanceof Secret && text === '') return true
  return text === 'none' || /^sqlite:(?!:memory:$)./.test(text) || isPostgres(text)
}

function isPostgres(text: string): boolean {
  return /^postgres(?:ql)?:\/\/./.test(text) && URL.canParse(text)
}

function hasPassword(text: string): boolean {
  if (!isPostgres(text)) return false
  const { password, search } = new URL(text)
  return password !== '' || /password/i.test(search)
}
