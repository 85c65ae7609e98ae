import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'

import { AdapterError, describeFileError } from '../../errors.ts'

export const SEALED = '.sealed'

const MAGIC = Buffer.from('MBREC1\n')
const KEY_ID = 8
const NONCE = 12
const TAG = 16

/** Encrypts a file with AES-256-GCM. `place` is the folder and the name of the file, and decryption fails at any other place. */
export function sealFile(key: Uint8Array, place: string, plain: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(place))
  const text = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([MAGIC, idOf(key), nonce, cipher.getAuthTag(), text])
}

/**
 * Decrypts a recorded file. Throws `ADP_CONFIGURATION` if `key` is the wrong key, and `ADP_USAGE` if the file is unreadable, changed or
 * moved.
 */
export async function readSealed(key: Uint8Array, path: string): Promise<Buffer> {
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw new AdapterError(
      'ADP_USAGE',
      `${path} cannot be read: ${describeFileError(cause)}. Nothing was done. Check the path and the permissions.`,
      { cause },
    )
  })
  const isSealed = bytes.length >= MAGIC.length + KEY_ID + NONCE + TAG && bytes.indexOf(MAGIC) === 0
  if (!isSealed)
    throw new AdapterError(
      'ADP_USAGE',
      `${path} is not an encrypted file of a recording. Nothing was done. Name a folder that markbridge record wrote.`,
    )
  let at = MAGIC.length
  const take = (length: number): Buffer => bytes.subarray(at, (at += length))
  if (!take(KEY_ID).equals(idOf(key)))
    throw new AdapterError(
      'ADP_CONFIGURATION',
      `${path} is encrypted with another key. The recording was not read. Pass the key of this recording.`,
    )
  try {
    const cipher = createDecipheriv('aes-256-gcm', key, take(NONCE))
    cipher.setAAD(Buffer.from(`${basename(dirname(resolve(path)))}/${basename(path, SEALED)}`))
    cipher.setAuthTag(take(TAG))
    return Buffer.concat([cipher.update(bytes.subarray(at)), cipher.final()])
  } catch (cause) {
    throw new AdapterError(
      'ADP_USAGE',
      `${path} was changed, truncated or moved, so it cannot be decrypted. The recording was not read. Restore the original file or delete the recording.`,
      { cause },
    )
  }
}

const idOf = (key: Uint8Array): Buffer =>
  createHash('sha256').update('markbridge recording key').update(key).digest().subarray(0, KEY_ID)
