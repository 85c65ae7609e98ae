/** Header fields that end at each hop (RFC 9110 7.6.1), in lower case; `Connection` may name more. */
export const hopByHopHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** The names in a `Connection` header, in lower case: they end at this hop too (RFC 9110 7.6.1). */
export function connectionOptions(connection: string | string[] | undefined): string[] {
  return [connection ?? []]
    .flat()
    .flatMap((value) => value.split(','))
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '')
}

/**
 * The fields of a message that go on to the next hop, as they were written: name, value, name, value. Those in `kept` go on
 * although `Connection` names them.
 */
export function endToEndFields(raw: readonly string[], kept: ReadonlySet<string> = new Set()): string[] {
  const names = raw.map((part, at) => (at % 2 === 0 ? part.toLowerCase() : ''))
  const connection = raw.filter((_part, at) => at % 2 === 1 && names[at - 1] === 'connection')
  const named = new Set(connectionOptions([...connection]))
  const endsHere = (name: string): boolean =>
    hopByHopHeaders.has(name) || (named.has(name) && !kept.has(name))
  return raw.filter((_part, at) => !endsHere(names[at - (at % 2)] ?? ''))
}
