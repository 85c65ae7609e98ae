import { countNodes, parseJson } from '../outcome.ts'

/**
 * About how many bytes are parsed at once. V8 allocates everything that it parses from a text over 100 KB in its old generation,
 * which it collects rarely.
 */
const PIECE_BYTES = 65_536
/**
 * How many brackets and commas a text may have that is parsed at once: each may take up to a microsecond, where every member has a name of
 * its own. A page of 1,000 marks has 20,000.
 */
const MAX_NODES_AT_ONCE = 32_768
/** Of a page that has more, about as many of them are parsed in a turn of the event loop. */
const NODES_OF_TURN = 8_192
/** A page with more is none: each may take a hundred bytes of memory. */
const MAX_NODES = 131_072

const ROWS_START = Buffer.from('"value":[')
const ROWS_END = Buffer.from('}]')
const BETWEEN_ROWS = Buffer.from('},{"')

/**
 * Parses the JSON of a reply to a read; undefined where it is none, or holds more than any page does. A page with many values is parsed in
 * turns of the event loop, which `later` gives, if its rows can be cut apart; without `later` nothing waits.
 */
export async function parsePage(body: Buffer, later?: (act: () => void) => void): Promise<unknown> {
  if (body.length <= PIECE_BYTES) return parseJson(body.toString('utf8'))
  const isSmall = hasFewNodes(body)
  if (!isSmall && countNodes(body.toString('latin1'), MAX_NODES) > MAX_NODES) return undefined
  const page = await parseInPieces(body, isSmall ? undefined : later)
  return page ?? parseJson(body.toString('utf8'), MAX_NODES_AT_ONCE)
}

/**
 * `JSON.parse` for a compact text of which the rows of `value` are parsed in pieces; undefined where it cannot be cut. A cut is only
 * a guess: it may lie in a string or within a row. But then neither side of it is a list of values, and where both are, so is the
 * whole, of the values of both.
 */
async function parseInPieces(bytes: Buffer, later?: (act: () => void) => void): Promise<unknown> {
  const start = bytes.indexOf(ROWS_START) + ROWS_START.length
  const end = bytes.lastIndexOf(ROWS_END) + 1
  if (start < ROWS_START.length || end <= start) return undefined
  const tail = bytes.toString('utf8', end)
  // A later member of the same name, however its name is written, would count in place of the rows.
  if (tail.includes('"value"') || tail.includes('\\')) return undefined
  const envelope = parseJson(bytes.toString('utf8', 0, start) + tail, MAX_NODES_AT_ONCE)
  if (typeof envelope !== 'object' || envelope === null) return undefined
  if (!('value' in envelope) || !isEmptyList(envelope.value)) return undefined
  const rows: unknown[] = []
  let nodesOfTurn = 0
  for (let from = start, to = end; from < end; from = to + 1) {
    const cut = bytes.indexOf(BETWEEN_ROWS, from + PIECE_BYTES)
    to = cut === -1 || cut >= end ? end : cut + 1
    const text = `[${bytes.toString('utf8', from, to)}]`
    if (later !== undefined) {
      nodesOfTurn += countNodes(text, NODES_OF_TURN)
      if (nodesOfTurn > NODES_OF_TURN) {
        await new Promise<void>(later)
        nodesOfTurn = 0
      }
    }
    const piece = parseJson(text, MAX_NODES_AT_ONCE)
    if (!Array.isArray(piece)) return undefined
    for (const row of piece) rows.push(row)
  }
  return { ...envelope, value: rows }
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

/** 1 for each byte that may be the bracket that opens a value, or the comma before one. */
const NODE_BYTES = new Uint8Array(256)
for (const byte of Buffer.from(',[{')) NODE_BYTES[byte] = 1

/** True where a text has few of them, those in its strings included; without a branch for each byte, since every page pays for it. */
function hasFewNodes(bytes: Buffer): boolean {
  let nodes = 0
  for (let at = 0; at < bytes.length; at += 1) nodes += NODE_BYTES[bytes[at] ?? 0] ?? 0
  return nodes <= MAX_NODES_AT_ONCE
}
