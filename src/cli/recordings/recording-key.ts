import { readFile } from 'node:fs/promises'

import { readVariable } from '../../config/environment.ts'
import { decodeKey, Secret } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'

/** Reads the key of recordings from `env:NAME` or `file:path`: 32 bytes, as 64 hexadecimal digits or in base64. Error: `ADP_CONFIGURATION`. */
export async function readRecordingKey(source: string): Promise<Uint8Array> {
  const text = await read(source)
  const bytes = decodeKey(new Secret(text))
  if (bytes !== undefined) return bytes
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `The key of ${source} must be 32 bytes: 64 hexadecimal digits, or base64 (openssl rand -hex 32).`,
  )
}

async function read(source: string): Promise<string> {
  const [, kind, name = ''] = /^(env|file):(.+)$/.exec(source) ?? []
  const text = kind === 'env' ? readVariable(name) : kind === 'file' ? await readText(name) : undefined
  if (text !== undefined && text.trim() !== '') return text.trim()
  // Without the text: it may be the key itself.
  if (kind === undefined)
    throw new AdapterError(
      'ADP_CONFIGURATION',
      'A key is named as env:NAME or file:path, never given itself.',
    )
  throw new AdapterError('ADP_CONFIGURATION', `${source} is not set, empty or cannot be read.`)
}

const readText = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined)
