import type fc from 'fast-check'

/** A query option as sent, with name and value percent-encoded. */
export interface RawOption {
  readonly name: string
  /** The value, or `undefined` to send the name without `=`. */
  readonly value: string | undefined
}

/** A request to the V2 interface. */
export interface Read {
  readonly method: string
  /** The path as sent. */
  readonly path: string
  readonly options: readonly RawOption[]
  readonly headers: Readonly<Record<string, string>>
}

export type Reads = fc.Arbitrary<Read>

export function targetOf({ path, options }: Read): string {
  if (options.length === 0) return path
  return `${path}?${options.map(({ name, value }) => (value === undefined ? name : `${name}=${value}`)).join('&')}`
}
