import { createHash, createHmac } from 'node:crypto'

const FIRST = createHash('sha256').digest()

/** Letters or digits that are permuted at once; longer texts go in chunks, each under all before it. */
const CHUNK = 48
const ROUNDS = 10
/** Alphabets are taken from blocks of this many code points. */
const BLOCK = 128

/**
 * Replaces the letters and digits of a text under a key, so that different texts stay different: a permutation of all texts of one
 * form. The form stays: each character is replaced by one of the same Unicode block, the same category (upper, lower, digit, …) and
 * the same length in UTF-8; blanks, signs and punctuation are kept.
 */
export function permuteText(key: Uint8Array, text: string): string {
  const characters = Array.from(text)
  const places: number[] = []
  const used: Alphabet[] = []
  for (const [at, character] of characters.entries()) {
    const alphabet = alphabetOf(character)
    if (alphabet === null) continue
    places.push(at)
    used.push(alphabet)
  }
  let before: Buffer = FIRST
  for (let from = 0; from < places.length; from += CHUNK) {
    const own = places.slice(from, from + CHUNK)
    const radices = used.slice(from, from + CHUNK)
    const plain = own.map((at) => characters[at] ?? '')
    const tweak = Buffer.concat([before, Buffer.from(radices.map((one) => one.characters[0]).join(''))])
    const mapped = permuteDigits(
      key,
      tweak,
      plain.map((character, n) => radices[n]?.places.get(character) ?? 0),
      radices.map((one) => one.characters.length),
    )
    for (const [n, at] of own.entries()) characters[at] = radices[n]?.characters[mapped[n] ?? 0] ?? ''
    if (from + CHUNK < places.length)
      before = createHash('sha256').update(before).update(plain.join('')).digest()
  }
  return characters.join('')
}

/** Permutes a number that is written in mixed radices: a Feistel network over its bits, repeated until the result is one of them. */
function permuteDigits(
  key: Uint8Array,
  tweak: Uint8Array,
  digits: readonly number[],
  radices: readonly number[],
): readonly number[] {
  let value = 0n
  let size = 1n
  for (const [n, digit] of digits.entries()) {
    const radix = BigInt(radices[n] ?? 1)
    value = value * radix + BigInt(digit)
    size *= radix
  }
  if (size < 2n) return digits
  const bits = (size - 1n).toString(2).length
  do value = feistel(key, tweak, value, bits)
  while (value >= size)
  const mapped: number[] = []
  for (const radix of [...radices].reverse()) {
    mapped.push(Number(value % BigInt(radix)))
    value /= BigInt(radix)
  }
  return mapped.reverse()
}

function feistel(key: Uint8Array, tweak: Uint8Array, value: bigint, bits: number): bigint {
  // One bit has no two halves: it is flipped or kept.
  if (bits === 1) return value ^ (roundOf(key, tweak, 0, 0n, 1n) & 1n)
  const low = BigInt(Math.floor(bits / 2))
  const high = BigInt(bits) - low
  let [left, right] = [value >> low, value & ((1n << low) - 1n)]
  for (let round = 0; round < ROUNDS; round += 1) {
    if (round % 2 === 0) left ^= roundOf(key, tweak, round, right, high)
    else right ^= roundOf(key, tweak, round, left, low)
  }
  return (left << low) | right
}

/** As many bits as a half has: no more than 512, since a chunk is short. */
function roundOf(key: Uint8Array, tweak: Uint8Array, round: number, half: bigint, bits: bigint): bigint {
  const digest = createHmac('sha512', key)
    .update(tweak)
    .update(`/${round}/${half.toString(16)}`)
    .digest('hex')
  return BigInt(`0x${digest}`) & ((1n << bits) - 1n)
}

/** An alphabet, with the place of each of its characters. */
interface Alphabet {
  readonly characters: readonly string[]
  readonly places: ReadonlyMap<string, number>
}

const alphabets = new Map<string, Alphabet>()
/** By character; null: it is kept. Most texts are of a few hundred characters. */
const known = new Map<string, Alphabet | null>()
const MAX_KNOWN = 4_096

/** The characters that may stand for one; null: neither a letter nor a digit: it is kept. */
function alphabetOf(character: string): Alphabet | null {
  const own = known.get(character)
  if (own !== undefined) return own
  const found = findAlphabet(character)
  if (known.size < MAX_KNOWN) known.set(character, found)
  return found
}

function findAlphabet(character: string): Alphabet | null {
  const category = categoryOf(character)
  if (category === undefined) return null
  const code = character.codePointAt(0) ?? 0
  const bytes = Buffer.byteLength(character)
  const name = `${category} ${Math.floor(code / BLOCK)} ${bytes}`
  const before = alphabets.get(name)
  if (before !== undefined) return before
  const start = code - (code % BLOCK)
  const characters = Array.from({ length: BLOCK }, (_, n) => String.fromCodePoint(start + n)).filter(
    (one) => categoryOf(one) === category && Buffer.byteLength(one) === bytes,
  )
  const alphabet = { characters, places: new Map(characters.map((one, at) => [one, at])) }
  alphabets.set(name, alphabet)
  return alphabet
}

const categories = [/^\p{Lu}$/u, /^\p{Ll}$/u, /^\p{L}$/u, /^\p{Nd}$/u]

function categoryOf(character: string): number | undefined {
  const category = categories.findIndex((pattern) => pattern.test(character))
  return category < 0 ? undefined : category
}
