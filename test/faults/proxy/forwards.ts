import { namePattern } from '../load/write.ts'

/** The face of the service that a request goes to. */
export type Face = 'V2' | 'V3'

/** A request with a write that was sent on to the service. */
export interface Forward {
  /** Its place in the sequence of the run, right before the service got it. */
  readonly at: number
  /** The time then, by `performance.now()`. */
  readonly atMs?: number
  /** Of the answer; undefined where none came. */
  readonly status: number | undefined
  /** The bearer token that it had. */
  readonly token?: string | undefined
  /** Default `V3`. */
  readonly face?: Face
  /** The place of the client's request that was relayed; undefined where the adapter has made a request of its own. */
  readonly sentAt?: number | undefined
}

/** Where a client says which of its requests this is: an adapter that relays a request leaves it there. */
export const sendHeader = 'X-Sent-At'

/** What was sent on to the service, by the name of the write. */
export interface ForwardLog {
  /** To be called with every request before it is sent on; what it returns takes the status and the head of the answer. */
  readonly onForward: (bytes: Buffer) => (status: number, head?: string) => void
  /** As `onForward`, of the V2 face. */
  readonly onLegacyForward: ForwardLog['onForward']
  readonly forwards: () => ReadonlyMap<string, readonly Forward[]>
  /** True for a delimiter of a batch reply that V2 has written: no two of its replies have the same. */
  readonly isOfV2: (boundary: string) => boolean
}

const sentPattern = new RegExp(`^${sendHeader}: *(\\d+)`, 'im')
const everyName = new RegExp(namePattern, 'g')

/** Creates a log that numbers its entries with `tick`. */
export function createForwardLog(tick: () => number): ForwardLog {
  const byName = new Map<string, Forward[]>()
  const boundaries = new Set<string>()
  const logOf =
    (face: Face): ForwardLog['onForward'] =>
    (bytes) => {
      const text = bytes.toString('latin1')
      const token = /^authorization: *bearer +(\S+)/im.exec(text)?.[1]
      const sent = sentPattern.exec(text)?.[1]
      const sentAt = sent === undefined ? undefined : Number(sent)
      const entry: Forward & { status: number | undefined } = {
        at: tick(),
        atMs: performance.now(),
        status: undefined,
        token,
        face,
        sentAt,
      }
      if (text.startsWith('POST ')) {
        for (const name of new Set(text.match(everyName))) {
          const entries = byName.get(name)
          if (entries === undefined) byName.set(name, [entry])
          else entries.push(entry)
        }
      }
      return (status, head = '') => {
        entry.status = status
        const boundary = boundaryIn(head)
        if (face === 'V2' && boundary !== undefined) boundaries.add(boundary)
      }
    }
  return {
    onForward: logOf('V3'),
    onLegacyForward: logOf('V2'),
    forwards: () => byName,
    isOfV2: (boundary) => boundaries.has(boundary),
  }
}

/** The delimiter that a content type names, alone or in the head of a message. */
export function boundaryIn(text: string): string | undefined {
  return /boundary="?([^";\s]+)/i.exec(text)?.[1]
}
