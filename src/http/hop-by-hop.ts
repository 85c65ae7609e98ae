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
