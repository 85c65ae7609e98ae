import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'

/** The members of a request. Header names are in lower case. */
export interface MessageParts {
  readonly url?: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Alternating names and values, as they were sent. Default: the values of `headers`. */
  readonly rawHeaders?: readonly string[]
  /** The address of the peer, or `undefined` for a closed connection. */
  readonly remoteAddress?: string | undefined
  /** True for a connection with TLS. */
  readonly encrypted?: boolean | undefined
  readonly body?: readonly string[]
}

function pairsOf(headers: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [name, value]))
}

/** Builds a GET with its whole body as the server of Node.js delivers it, without a real connection. */
export function incomingMessage(parts: MessageParts): IncomingMessage {
  const { url = '/', headers = {}, rawHeaders = pairsOf(headers), body = [] } = parts
  const { remoteAddress, encrypted } = parts
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress })
  const message = new IncomingMessage(encrypted === undefined ? socket : Object.assign(socket, { encrypted }))
  Object.assign(message, { method: 'GET', url, rawHeaders: [...rawHeaders], headers: { ...headers } })
  const left = [...body]
  // Delivers one chunk after another, as over a network.
  message._read = () => void setImmediate(() => message.push(left.shift() ?? null))
  message.complete = true
  return message
}
