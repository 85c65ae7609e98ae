import { readFile } from 'node:fs/promises'

import { readVariable } from '../config/environment.ts'
import { decodeKey, Secret } from '../config/index.ts'
import { AdapterError } from '../errors.ts'

/** Reads what `--key` names: `env:NAME` or `file:path`. Error: `ADP_USAGE`, without the text, which may be the key itself. */
export async function readKeySource(source: string): Promise<string> {
  const [, kind, name = ''] = /^(env|file):(.+)$/s.exec(source) ?? []
  if (kind === undefined)
    throw new AdapterError('ADP_USAGE', '--key is env:NAME or file:path; a key is never given itself.')
  const text = kind === 'env' ? readVariable(name) : await readFile(name, 'utf8').catch(() => undefined)
  if (text !== undefined && text.trim() !== '') return text.trim()
  throw new AdapterError('ADP_USAGE', `${source} is not set, empty or cannot be read.`)
}

/** Reads the key of recordings: 32 bytes, as 64 hexadecimal digits or in base64. Error: `ADP_USAGE`. */
export async function readRecordingKey(source: string): Promise<Uint8Array> {
  const bytes = decodeKey(new Secret(await readKeySource(source)))
  if (bytes !== undefined) return bytes
  throw new AdapterError(
    'ADP_USAGE',
    `The key of ${source} must be 32 bytes: 64 hexadecimal digits, or base64 (openssl rand -hex 32).`,
  )
}
