import type { V3Credentials } from '../v3/index.ts'

const BASE64_RUN = /[A-Za-z0-9+/_-]{4,}/g
/** Layers of encoding that are looked through. */
const MAX_LAYERS = 3

/** The credentials of a call that are not the client's own, and that it must not learn from the reply. */
export function addedCredentials(sent: V3Credentials, client: V3Credentials): string[] {
  const token = (authorization: string): string => authorization.replace(/^bearer +/i, '')
  const added: string[] = []
  if (sent.subscriptionKey !== client.subscriptionKey) added.push(sent.subscriptionKey)
  if (token(sent.authorization) !== token(client.authorization)) added.push(token(sent.authorization))
  return added.filter((credential) => credential !== '')
}

/** True for a text that holds one of the credentials: as it is, inside a longer text, percent-encoded or in base64. */
export function holdsCredential(text: string, credentials: readonly string[]): boolean {
  if (credentials.length === 0) return false
  const wanted = credentials.map((credential) => credential.toLowerCase())
  let layer = [text]
  for (let depth = 0; depth < MAX_LAYERS && layer.length > 0; depth += 1) {
    if (layer.some((one) => wanted.some((credential) => one.toLowerCase().includes(credential)))) return true
    layer = layer.flatMap(decodings)
  }
  return false
}

/** Texts that a text may have been encoded from, other than itself. */
function decodings(text: string): string[] {
  const texts: string[] = []
  if (text.includes('%'))
    texts.push(
      text.replace(/%([0-9a-f]{2})/gi, (_all, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    )
  if (text.includes('\\')) texts.push(text.replaceAll('\\', ''))
  for (const [run] of text.matchAll(BASE64_RUN)) {
    // A run may begin with other characters of the alphabet, so that its groups of four are shifted.
    for (let shift = 0; shift < 4; shift += 1)
      texts.push(Buffer.from(run.slice(shift), 'base64').toString('latin1'))
  }
  return texts
}
