import { namePattern } from '../load/write.ts'

/** The interface of the service that receives a request. */
export type Face = 'V2' | 'V3'

/** A request with a write that was forwarded to the service. */
export interface Forward {
  /** The position of the request in the sequence of the run, just before the service received it. */
  readonly at: number
  /** The time in milliseconds of `performance.now()` just before the service received the request. */
  readonly atMs?: number
  /** The status of the reply, or `undefined` if no reply arrived. */
  readonly status: number | undefined
  readonly token?: string | undefined
  /** Default: `V3`. */
  readonly face?: Face
  /** The position of the client's request that was relayed, or `undefined` if the adapter made its own request. */
  readonly sentAt?: number | undefined
}

/** The header in which a client numbers its requests. An adapter that relays a request keeps this header. */
export const sendHeader = 'X-Sent-At'

/** The requests that were forwarded to the service, by the name of the write. */
export interface ForwardLog {
  /**
   * Records a request. Call this with every request before it is forwarded. The returned function takes the status and the head of the
   * reply.
   */
  readonly onForward: (bytes: Buffer) => (status: number, head?: string) => void
  /** Works like `onForward`, for requests to V2. */
  readonly onLegacyForward: ForwardLog['onForward']
  readonly forwards: () => ReadonlyMap<string, readonly Forward[]>
  /** Returns true for a delimiter of a batch reply that V2 wrote. No two replies of V2 share a delimiter. */
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

/** Returns the boundary in `text`, which is a Content-Type or the head of a message. `undefined` if `text` has no boundary. */
export function boundaryIn(text: string): string | undefined {
  return /boundary="?([^";\s]+)/i.exec(text)?.[1]
}
