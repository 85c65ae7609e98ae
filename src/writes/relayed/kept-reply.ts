import * as z from 'zod'

/** A reply of V2 as its client got it, or would have. */
export interface KeptReply {
  readonly status: number
  readonly reason: string
  /** Name, value, name, value, as they were sent. */
  readonly fields: readonly string[]
  readonly body: Buffer
}

const headSchema = z.tuple([z.number(), z.string(), z.array(z.string())])

/** Text for the journal: one line of JSON, then the bytes of the body, each as one character. */
export function encodeKeptReply({ status, reason, fields, body }: KeptReply): string {
  return `${JSON.stringify([status, reason, fields])}\n${body.toString('latin1')}`
}

/** The inverse of `encodeKeptReply`; undefined for no text. */
export function decodeKeptReply(text: string | undefined): KeptReply | undefined {
  if (text === undefined) return undefined
  const end = text.indexOf('\n')
  const [status, reason, fields] = headSchema.parse(JSON.parse(text.slice(0, end)))
  return { status, reason, fields, body: Buffer.from(text.slice(end + 1), 'latin1') }
}

/** The value of a field; undefined: there is none. */
export function fieldOf({ fields }: Pick<KeptReply, 'fields'>, name: string): string | undefined {
  const at = fields.findIndex((one, index) => index % 2 === 0 && one.toLowerCase() === name)
  return at < 0 ? undefined : fields[at + 1]
}
