import { escapeLiteral } from 'pg'

// Parameters of prepared statements as text: EXECUTE takes literals, and many of them go in one message.

/** A number, a text or null. */
export function literal(value: number | string | null): string {
  if (value === null) return 'null'
  return typeof value === 'number' ? String(value) : escapeLiteral(value)
}

/** Bytes. */
export function bytes(value: Uint8Array | null): string {
  return value === null ? 'null' : `'\\x${toHex(value)}'`
}

/** An array of numbers and nulls. */
export const numbers = (values: readonly (number | null)[]): string =>
  `'{${values.map((value) => value ?? 'null').join()}}'`

/** An array of texts and nulls. */
export const texts = (values: readonly (string | null)[]): string =>
  values.every((value) => value === null)
    ? `'{${values.map(() => 'null').join()}}'`
    : `array[${values.map(literal).join()}]::text[]`

/** An array of bytes. */
export const byteArrays = (values: readonly Uint8Array[]): string =>
  `'{${values.map((value) => `"\\\\x${toHex(value)}"`).join()}}'`

const toHex = (value: Uint8Array): string =>
  Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')
