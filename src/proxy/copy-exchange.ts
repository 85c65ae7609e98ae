import type { IncomingMessage, ServerResponse } from 'node:http'

import type { WireExchange } from '../compare/wire-exchange.ts'
import type { Side } from '../rollout/stage.ts'

/** Takes the copy of one exchange. */
export interface CopySink {
  /** Reserves memory for more bytes; false: not enough is left, and the copy goes without this body. */
  hold(bytes: number): boolean
  /** Called once, after the exchange. Undefined: no side has served it, or one of its messages is not whole. Must not throw. */
  end(copied: WireExchange | undefined): void
}

interface CopiedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
}

/** Copies both messages of an exchange as they pass. Nothing waits for the copy, and no byte of the exchange changes. */
export function copyExchange(
  { request, response, receivedMs }: CopiedRequest,
  nowMs: () => number,
  sink: CopySink,
): { served(side: Side): void } {
  const { method = '', url: target = '' } = request
  const sent = new BodyCopy(sink)
  const got = new BodyCopy(sink)
  let served: Side | undefined
  copyRequest(request, sent)
  const headFields = copyReply(response, got)
  const end = (): void => {
    if (served === undefined || !request.complete || !response.writableFinished) {
      sink.end(undefined)
      return
    }
    sink.end({
      method,
      target,
      request: { fields: request.rawHeaders, body: sent.take() },
      reply: {
        status: response.statusCode,
        reason: response.statusMessage,
        fields: [...fieldsOf(response.getHeaders()), ...headFields()],
        body: got.take(),
      },
      served,
      receivedMs,
      durationMs: nowMs() - receivedMs,
    })
  }
  // A client may have gone while its write waited for its stage.
  if (response.closed) end()
  else response.once('close', end)
  return {
    served: (side) => {
      served = side
    },
  }
}

/** The bytes of one body, as far as there is room for them. */
class BodyCopy {
  private readonly sink: CopySink
  private pieces: Buffer[] | undefined = []

  constructor(sink: CopySink) {
    this.sink = sink
  }

  add(chunk: unknown, encoding?: unknown): void {
    if (this.pieces === undefined || !(typeof chunk === 'string' || chunk instanceof Uint8Array)) return
    const ofText = typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, ofText) : Buffer.from(chunk)
    if (this.sink.hold(bytes.length)) this.pieces.push(bytes)
    else this.giveUp()
  }

  giveUp(): void {
    this.pieces = undefined
  }

  take(): Buffer | undefined {
    return this.pieces && Buffer.concat(this.pieces)
  }
}

function copyRequest(request: IncomingMessage, copy: BodyCopy): void {
  const emit = request.emit.bind(request) as Call
  const unshift = request.unshift.bind(request) as Call
  Object.assign(request, {
    // Not a listener: it would decide when the body flows, before its reader is there.
    emit: (...args: readonly unknown[]) => {
      if (args[0] === 'data') copy.add(args[1])
      return emit(...args)
    },
    // What is put back comes again: it is a body that the adapter found too large.
    unshift: (...args: readonly unknown[]) => {
      copy.giveUp()
      return unshift(...args)
    },
  })
}

type Call = (...args: readonly unknown[]) => unknown

/** Returns the fields that were given with the head, once it was written. */
function copyReply(response: ServerResponse, copy: BodyCopy): () => readonly string[] {
  let fields: readonly string[] = []
  const write = response.write.bind(response) as Call
  const end = response.end.bind(response) as Call
  const writeHead = response.writeHead.bind(response) as Call
  Object.assign(response, {
    write: (...args: readonly unknown[]) => {
      copy.add(args[0], args[1])
      return write(...args)
    },
    end: (...args: readonly unknown[]) => {
      copy.add(args[0], args[1])
      return end(...args)
    },
    writeHead: (...args: readonly unknown[]) => {
      fields = fieldsOf(args.at(-1))
      return writeHead(...args)
    },
  })
  return () => fields
}

/** Fields as an object of headers or as a list of names and values; without any, none. */
function fieldsOf(given: unknown): readonly string[] {
  if (Array.isArray(given)) return given.map(String)
  if (typeof given !== 'object' || given === null) return []
  return Object.entries(given).flatMap(([name, value]: [string, unknown]) => [name, String(value)])
}
