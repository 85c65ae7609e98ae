import { createHash } from 'node:crypto'
import { inspect } from 'node:util'

import type { ErrorDetail } from '../errors.ts'

/** A value that must never be shown. Printing, logging or serialising a `Secret` yields `[secret]`. */
export class Secret {
  readonly #value: string
  readonly #isRead: boolean

  constructor(value: string, isRead = true) {
    this.#value = value
    this.#isRead = isRead
  }

  /** False if the value was not read, or could not be read. A check of the value then has nothing to check. */
  get isRead(): boolean {
    return this.#isRead && this.#value !== ''
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [inspect.custom](): string {
    return '[secret]'
  }
}

/** Decodes a key of 32 bytes that is written as 64 hexadecimal digits or in base64. Returns `undefined` if the key has another length. */
export function decodeKey(secret: Secret): Uint8Array | undefined {
  const text = secret.reveal()
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64')
  return bytes.byteLength === 32 ? bytes : undefined
}

/** The sources of secrets. Each function returns `undefined` for a missing secret. */
export interface SecretSources {
  readonly env: (name: string) => string | undefined
  readonly file: (path: string) => Promise<string | undefined>
  /** The sections whose secrets are read, or `undefined` for all sections. */
  readonly sections?: readonly string[] | undefined
}

/**
 * Replaces each `{ env: NAME }` and `{ file: path }` with a `Secret`. A reference to a missing secret becomes an empty secret, so that the
 * rest of the input can be validated. Faults name the variable or the file, never its value.
 */
export async function resolveSecrets(
  input: unknown,
  sources: SecretSources,
): Promise<{ readonly value: unknown; readonly faults: readonly ErrorDetail[] }> {
  const faults: ErrorDetail[] = []
  const take = (text: string | undefined, missing: string, target: string): Secret => {
    const value = text?.trim() ?? ''
    if (value === '') faults.push({ code: 'secret', message: missing, target })
    // Refuses control characters, because the secret may be sent in a header field. A certificate or key in PEM form is never sent in a
    // header field.
    else if (/[\u0000-\u001f\u007f]/.test(value) && !value.startsWith('-----BEGIN ')) {
      faults.push({ code: 'secret', message: 'contains a line break or another control character', target })
    }
    return new Secret(value)
  }
  const resolve = async (value: unknown, path: string): Promise<unknown> => {
    if (Array.isArray(value))
      return Promise.all(value.map((item, index) => resolve(item, `${path}[${index}]`)))
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value)
    const [[key, source] = []] = entries
    if (entries.length === 1 && typeof source === 'string' && (key === 'env' || key === 'file')) {
      if (sources.sections?.includes(path.split(/[.[]/)[0] ?? '') === false) return placeholderOf(path)
      if (key === 'env') {
        return take(sources.env(source), `the environment variable ${source} is not set`, path)
      }
      const text = await sources.file(source)
      const state = text === undefined ? 'cannot be read' : 'is empty'
      return take(text, `the file ${source} ${state}`, path)
    }
    const members = entries.map(async ([name, item]) => {
      return [name, await resolve(item, path === '' ? name : `${path}.${name}`)] as const
    })
    return Object.fromEntries(await Promise.all(members))
  }
  return { value: await resolve(input, ''), faults }
}

/** Returns a placeholder for a secret that is not read. Each placeholder is different and valid wherever a secret is allowed. */
const placeholderOf = (path: string): Secret =>
  new Secret(createHash('sha256').update(path).digest('hex'), false)
