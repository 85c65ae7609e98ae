import type { Side } from '../rollout/index.ts'

/** A message as it was on the connection of a client. */
export interface WireMessage {
  /** Name, value, name, value. */
  readonly fields: readonly string[]
  /** Undefined: it was too large to be copied. */
  readonly body: Buffer | undefined
}

export interface WireReply extends WireMessage {
  readonly status: number
  readonly reason: string
}

/** An exchange of a client as it was on its connection, whichever side served it. */
export interface WireExchange {
  readonly method: string
  /** Path and query, as the client wrote them. */
  readonly target: string
  readonly request: WireMessage
  readonly reply: WireReply
  readonly served: Side
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** From the arrival of the request to the end of the reply. */
  readonly durationMs: number
}

/** The first value of a field. `name` in lower case. */
export function fieldOf({ fields }: Pick<WireMessage, 'fields'>, name: string): string | undefined {
  const at = fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === name)
  return at === -1 ? undefined : fields[at + 1]
}
