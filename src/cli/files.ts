import { readFile, stat, writeFile } from 'node:fs/promises'

import { readSealed, SEALED } from '../compare/recording/sealed-file.ts'
import { replaceFile } from '../compare/run/run-files.ts'
import { readVariable } from '../config/environment.ts'
import { decodeKey, Secret } from '../config/index.ts'
import { AdapterError, describeFileError } from '../errors.ts'

/** Reads a file, or standard input if the path is `-`. Throws `ADP_USAGE` if the file cannot be read. */
export async function readGivenFile(path: string): Promise<Buffer> {
  if (path !== '-')
    return readFile(path).catch((cause: unknown) => {
      throw new AdapterError(
        'ADP_USAGE',
        `The file ${path} cannot be read: ${describeFileError(cause)}. Nothing was done. Check the path and the permissions.`,
        { cause },
      )
    })
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Writes a file that only its owner can read. `force` replaces an existing file. Throws `ADP_USAGE` if the file cannot be written. */
export async function writeResult(path: string, text: string, force = false): Promise<void> {
  await expectPlace(path, force)
  try {
    if (force) await replaceFile(path, text)
    else await writeFile(path, text, { flag: 'wx', mode: 0o600 })
  } catch (cause) {
    throw writeError(
      `${path} cannot be written: ${describeFileError(cause)}. Nothing was written. Name another file, or correct the permissions`,
      cause,
    )
  }
}

/** Throws `ADP_USAGE` if a result cannot be written to this path. A command calls it first, so that it fails before it does its work. */
export async function expectPlace(
  path: string,
  force = false,
  remedy = 'replace the file with --force',
): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  // If the command runs as root, a rename would replace a device such as /dev/stdout.
  if (found?.isFile() === false)
    throw writeError(`${path} is not a regular file. Nothing was written. Name another file`)
  if (found !== undefined && !force)
    throw writeError(`${path} exists already. Nothing was written. Name another file, or ${remedy}`)
}

const writeError = (message: string, cause?: unknown): AdapterError =>
  new AdapterError('ADP_USAGE', `${message}.`, { cause })

/**
 * Reads the key that a flag names as `env:NAME` or `file:path`. Throws `ADP_USAGE` without quoting an invalid source, which may be the key
 * itself.
 */
export async function readKeySource(source: string, flag = '--key'): Promise<string> {
  const [, kind, name = ''] = /^(env|file):(.+)$/s.exec(source) ?? []
  if (kind === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      `${flag} does not name the source of a key. The key was not read. Give env:NAME or file:path, never the key itself.`,
    )
  const text = kind === 'env' ? readVariable(name) : await readFile(name, 'utf8').catch(() => undefined)
  if (text !== undefined && text.trim() !== '') return text.trim()
  throw new AdapterError(
    'ADP_USAGE',
    `${source} is not set, is empty or cannot be read. The key was not read. Set the variable, or name a readable file.`,
  )
}

/** Reads the key of recordings: 32 bytes in hexadecimal or base64. Throws `ADP_USAGE` if the key is missing or not valid. */
export async function readRecordingKey(source: string | undefined): Promise<Uint8Array> {
  if (source === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      'Recordings are encrypted, and no key is given. Nothing was read or written. Name the key with --key <source>.',
    )
  const bytes = decodeKey(new Secret(await readKeySource(source)))
  if (bytes !== undefined) return bytes
  throw new AdapterError(
    'ADP_USAGE',
    `The key of ${source} is not valid. Nothing was read or written. A key has 32 bytes, as 64 hexadecimal digits or in base64 (openssl rand -hex 32).`,
  )
}

/** Reads a file like `readGivenFile`. Decrypts it if it is a recording. Throws `ADP_USAGE`, and the errors of `readSealed`. */
export async function readRecordedFile(path: string, source: string | undefined): Promise<Buffer> {
  return path.endsWith(SEALED) ? readSealed(await readRecordingKey(source), path) : readGivenFile(path)
}
