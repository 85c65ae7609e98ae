import { createHash } from 'node:crypto'
import { inspect } from 'node:util'

import type { ErrorDetail } from '../errors.ts'

/** A value that is used and never shown: printing, logging or serialising it gives `[secret]`. */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The value itself, for the one place that sends it. */
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

/** The bytes of a key of 32 bytes, which is written as 64 hexadecimal digits or in base64; undefined: it has another length. */
export function decodeKey(secret: Secret): Uint8Array | undefined {
  const text = secret.reveal()
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64')
  return bytes.byteLength === 32 ? bytes : undefined
}

/** Sources of secrets; both return undefined for a missing one. */
export interface SecretSources {
  readonly env: (name: string) => string | undefined
  readonly file: (path: string) => Promise<string | undefined>
  /** The only sections whose secrets are read; undefined: all are. */
  readonly sections?: readonly string[] | undefined
}

/**
 * Replaces each `{ env: NAME }` and `{ file: path }` by a `Secret`. A faulty reference becomes an empty secret, so that the rest can
 * be validated. Faults name the variable or file, never a value.
 */
export async function resolveSecrets(
  input: unknown,
  sources: SecretSources,
): Promise<{ readonly value: unknown; readonly faults: readonly ErrorDetail[] }> {
  const faults: ErrorDetail[] = []
  const take = (text: string | undefined, missing: string, target: string): Secret => {
    const value = text?.trim() ?? ''
    if (value === '') faults.push({ code: 'secret', message: missing, target })
    // It is sent in a header, and a header with one cannot be sent.
    else if (/[\u0000-\u001f\u007f]/.test(value)) {
      faults.push({ code: 'secret', message: 'holds a line end or another control character', target })
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

/** Stands for a secret that is not read: each is another one, and fits wherever one may be. */
const placeholderOf = (path: string): Secret => new Secret(createHash('sha256').update(path).digest('hex'))
