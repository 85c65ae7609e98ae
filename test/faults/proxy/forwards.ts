import { namePattern } from '../load/write.ts'

/** A request with a write that was sent on to the service. */
export interface Forward {
  /** Its place in the sequence of the run, right before the service got it. */
  readonly at: number
  /** Of the answer; undefined where none came. */
  readonly status: number | undefined
  /** The bearer token that it had. */
  readonly token?: string | undefined
}

/** What was sent on to the service, by the name of the write. */
export interface ForwardLog {
  /** To be called with every request before it is sent on; what it returns takes the status of the answer. */
  readonly onForward: (bytes: Buffer) => (status: number) => void
  readonly forwards: () => ReadonlyMap<string, readonly Forward[]>
}

const everyName = new RegExp(namePattern, 'g')

/** Creates a log that numbers its entries with `tick`. */
export function createForwardLog(tick: () => number): ForwardLog {
  const byName = new Map<string, Forward[]>()
  return {
    onForward: (bytes) => {
      const text = bytes.toString('latin1')
      const token = /^authorization: *bearer +(\S+)/im.exec(text)?.[1]
      const entry: { at: number; status: number | undefined; token: string | undefined } = {
        ...{ at: tick(), status: undefined, token },
      }
      if (text.startsWith('POST ')) {
        for (const name of new Set(text.match(everyName))) {
          const entries = byName.get(name)
          if (entries === undefined) byName.set(name, [entry])
          else entries.push(entry)
        }
      }
      return (status) => {
        entry.status = status
      }
    },
    forwards: () => byName,
  }
}
