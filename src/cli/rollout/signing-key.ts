import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'

import { readVariable } from '../../config/environment.ts'
import { AdapterError } from '../../errors.ts'

/** Reads the private key that signs: `env:NAME` or `file:path` with Ed25519 in PEM. Error: `ADP_USAGE`, without anything of the key. */
export async function readSigningKey(source: string): Promise<KeyObject> {
  const [, form, name = ''] = /^(env|file):(.+)$/s.exec(source) ?? []
  if (form === undefined) throw unusable('--key is env:NAME or file:path')
  const text = form === 'env' ? readVariable(name) : await readText(name)
  if (text === undefined || text.trim() === '')
    throw unusable(
      form === 'env' ? `the environment variable ${name} is not set` : `the file ${name} is empty`,
    )
  // A variable that was set in a shell often has its line ends as \n.
  return expectEd25519(
    () => createPrivateKey(text.replaceAll('\\n', '\n')),
    `${source} is not a private key in PEM`,
  )
}

/** Reads a public key: a file with Ed25519 in PEM. Error: `ADP_USAGE`. */
export async function readPublicKey(path: string): Promise<KeyObject> {
  const text = await readText(path)
  return expectEd25519(() => createPublicKey(text), `${path} is not a public key in PEM`)
}

/** Reads a text file that an argument names. Error: `ADP_USAGE`. */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new AdapterError('ADP_USAGE', `The file ${path} cannot be read.`, { cause })
  }
}

function expectEd25519(read: () => KeyObject, otherwise: string): KeyObject {
  let key: KeyObject
  try {
    key = read()
  } catch {
    // The cause may quote the text.
    throw unusable(otherwise)
  }
  if (key.asymmetricKeyType !== 'ed25519') throw unusable(`${otherwise} of the type Ed25519`)
  return key
}

const unusable = (why: string): AdapterError =>
  new AdapterError('ADP_USAGE', `This key cannot be used: ${why}.`)
