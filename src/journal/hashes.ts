import { hash } from 'node:crypto'

import type { ConfirmedMark } from './journal.ts'

const KEY_HEX = 32
const MARK_HEX = 16
/** Characters of a time in milliseconds. */
const TIME_LENGTH = 17
/** Characters of a mark in a row. */
export const MARK_LENGTH = MARK_HEX + TIME_LENGTH

/** Stands for the hash of a key that was erased. */
export const NO_KEY = '0'.repeat(KEY_HEX)

/** Hashes texts with the salt of the journal, 16 bytes each in hexadecimal, which no table of known keys gives away. */
export type HashKeys = (keys: readonly string[]) => readonly string[]

export function createKeyHash(salt: Uint8Array): HashKeys {
  const prefix = Buffer.from(salt).toString('hex')
  return (keys) => keys.map((key) => hash('sha256', prefix + key, 'hex').slice(0, KEY_HEX))
}

/** The salted hash of a mark's id, 8 bytes in hexadecimal. */
export const hashMarkId = (hashKeys: HashKeys, externalId: string): string =>
  hashKeys([`mark ${externalId.toLowerCase()}`])[0]?.slice(0, MARK_HEX) ?? ''

/** A mark in a row, `MARK_LENGTH` characters: the hash of its id, and its time. */
export const encodeMark = (hashKeys: HashKeys, { externalId, recordedMs }: ConfirmedMark): string =>
  hashMarkId(hashKeys, externalId) + String(recordedMs).padStart(TIME_LENGTH)

/** Reads what `encodeMark` wrote. */
export function decodeMark(text: string): { readonly idHash: string; readonly recordedMs: number } {
  return { idHash: text.slice(0, MARK_HEX), recordedMs: Number(text.slice(MARK_HEX)) }
}
