import type fc from 'fast-check'

/** A query option as it is sent, both sides percent-encoded. */
export interface RawOption {
  readonly name: string
  /** Undefined: no `=` either. */
  readonly value: string | undefined
}

/** One request to the V2 interface. */
export interface Read {
  readonly method: string
  /** The path as it is sent. */
  readonly path: string
  readonly options: readonly RawOption[]
  readonly headers: Readonly<Record<string, string>>
}

export type Reads = fc.Arbitrary<Read>

/** The request target. */
export function targetOf({ path, options }: Read): string {
  if (options.length === 0) return path
  return `${path}?${options.map(({ name, value }) => (value === undefined ? name : `${name}=${value}`)).join('&')}`
}
