/** Header fields that end at each hop (RFC 9110 7.6.1), in lower case; `Connection` may name more. */
const hopByHopHeaders: ReadonlySet<string> = new Set([
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
function connectionOptions(connection: string): string[] {
  return connection.split(',').map((name) => name.trim().toLowerCase())
}

/**
 * The fields of a message that go on to the next hop, as they were written: name, value, name, value. Those in `kept` go on
 * although `Connection` names them.
 */
export function endToEndFields(raw: readonly string[], kept: ReadonlySet<string> = NONE): string[] {
  const fields: string[] = []
  let named: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    const lower = name.toLowerCase()
    if (lower === 'connection') named = [...named, ...connectionOptions(value)]
    else if (!hopByHopHeaders.has(lower)) fields.push(name, value)
  }
  if (named.length === 0) return fields
  const endsHere = (name = ''): boolean => named.includes(name.toLowerCase()) && !kept.has(name.toLowerCase())
  return fields.filter((_part, at) => !endsHere(fields[at - (at % 2)]))
}

const NONE: ReadonlySet<string> = new Set()
