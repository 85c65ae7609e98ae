import {
  type Alias,
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  stringify,
  visit,
  type YAMLMap,
} from 'yaml'

import type { ErrorDetail } from '../errors.ts'
import { type Config, keysOf } from './schema.ts'

/** The configuration as a file with every default; secrets show as `[secret]`, addresses as text. */
export function printConfig(config: Config): string {
  return stringify(JSON.parse(JSON.stringify(keysOf(config))))
}

/** Where in the file, from 1. */
export interface FilePosition {
  readonly line: number
  readonly column: number
}

/** A fault of the file, with its place where it is known. */
export type FileFault = ErrorDetail & Partial<FilePosition>

/** A YAML file that was read. */
export interface YamlFile {
  /** Undefined where the faults leave nothing to read. */
  readonly value: unknown
  readonly faults: readonly FileFault[]
  /** The position of a key such as `partners[0].v3.budgetMs`, or of the mapping that would contain it. */
  readonly positionOf: (target: string) => FilePosition | undefined
}

/** The parser's own messages quote the line, which may hold a secret. */
const causes: Readonly<Partial<Record<ErrorCode, string>>> = {
  ALIAS_PROPS: 'an alias has an anchor or a tag',
  BAD_ALIAS: 'an alias has no name, or names no anchor before it',
  BAD_DIRECTIVE: 'a directive is not known',
  BAD_DQ_ESCAPE: 'a text in double quotes has an unknown escape',
  BAD_INDENT: 'the indentation does not fit the lines before',
  BAD_PROP_ORDER: 'an anchor or a tag is misplaced',
  BAD_SCALAR_START: 'a text begins with a character that needs quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a nested mapping begins on the line of its key',
  BLOCK_IN_FLOW: 'a block is inside brackets or braces',
  MISSING_CHAR: 'a quote, bracket, brace, colon or comma is missing',
  MULTILINE_IMPLICIT_KEY: 'a key goes over several lines, or its colon is missing',
  MULTIPLE_ANCHORS: 'a value has two anchors',
  MULTIPLE_DOCS: 'a second document begins; the file must have one',
  MULTIPLE_TAGS: 'a value has two tags',
  RESOURCE_EXHAUSTION: 'the file is nested too deeply',
  TAB_AS_INDENT: 'a tab is used for indentation',
  TAG_RESOLVE_FAILED: 'a tag does not fit its value',
  UNEXPECTED_TOKEN: 'an unexpected character or word',
  BAD_COLLECTION_TYPE: 'a tag does not fit its value',
}

/** Faults that leave the rest readable, so that its faults can be listed as well. */
const harmless: ReadonlySet<ErrorCode> = new Set(['MULTIPLE_DOCS'])

/** Reads YAML. Every fault has its line, its column and its cause in words; none quotes a value of the file. */
export function readYaml(text: string): YamlFile {
  const lines = new LineCounter()
  const at = (offset: number | undefined): Partial<FilePosition> => {
    if (offset === undefined) return {}
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  const nothing = (message: string): YamlFile => ({
    value: undefined,
    faults: [{ code: 'yaml', message }],
    positionOf: () => undefined,
  })
  try {
    // The parser's own check for duplicate keys compares each key with all before it.
    const options = { lineCounter: lines, prettyErrors: false, logLevel: 'error', uniqueKeys: false } as const
    const document = parseDocument(text, options)
    const faults: FileFault[] = document.errors.map(({ code, pos }) => ({
      code: 'yaml',
      message: causes[code] ?? 'it is not YAML',
      ...at(pos[0]),
    }))
    const { sources, wrongAliases, repeatedKeys } = survey(document, lines)
    for (const { message, offset } of [...wrongAliases, ...repeatedKeys])
      faults.push({ code: 'yaml', message, ...at(offset) })
    const isReadable = wrongAliases.length === 0 && document.errors.every(({ code }) => harmless.has(code))
    const value: unknown = isReadable ? document.toJS() : undefined
    return {
      value,
      faults: firstAtEachPlace(faults),
      positionOf: createPositions(document, lines, sources),
    }
  } catch (error) {
    // An alias that expands exponentially, or nesting that overflows the stack.
    return nothing(
      error instanceof ReferenceError
        ? 'its aliases expand it to more than 100 times its size'
        : 'it cannot be read: it is nested too deeply',
    )
  }
}

/** Keeps one fault per position: further ones there are consequences of it. */
function firstAtEachPlace(faults: readonly FileFault[]): FileFault[] {
  const places = new Map<string, FileFault>()
  for (const fault of faults) {
    const place = `${fault.line ?? ''}:${fault.column ?? ''}`
    if (!places.has(place)) places.set(place, fault)
  }
  return [...places.values()]
}

interface Slip {
  readonly message: string
  readonly offset: number | undefined
}

/** The results of one walk over the document. */
interface Survey {
  /** The value of each alias. */
  readonly sources: ReadonlyMap<Alias, Node>
  /** Aliases without a value, or whose value contains them. */
  readonly wrongAliases: readonly Slip[]
  /** Duplicate keys; the rest stays readable. */
  readonly repeatedKeys: readonly Slip[]
}

function survey(document: Document.Parsed, lines: LineCounter): Survey {
  const anchors = new Map<string, Node>()
  const sources = new Map<Alias, Node>()
  const wrongAliases: Slip[] = []
  const repeatedKeys: Slip[] = []
  visit(document, (_key, node, path) => {
    if (isAlias(node)) {
      const source = anchors.get(node.source)
      const offset = node.range?.[0]
      if (source === undefined) wrongAliases.push({ message: 'an alias names no anchor before it', offset })
      else if (path.includes(source))
        wrongAliases.push({ message: 'an alias is inside the value that it names', offset })
      else sources.set(node, source)
    } else if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, node)
    if (isMap(node)) for (const slip of repeatedIn(node, lines)) repeatedKeys.push(slip)
  })
  return { sources, wrongAliases, repeatedKeys }
}

/** The name of a key; omitted if it could be a misplaced value. */
const NAME = /^[\w.-]{1,64}$/

function repeatedIn({ items }: YAMLMap, lines: LineCounter): Slip[] {
  const firsts = new Map<unknown, number | undefined>()
  return items.flatMap(({ key }) => {
    if (!isScalar(key)) return []
    const { value, range } = key
    if (firsts.has(value))
      return [{ message: namedTwice(String(value), firsts.get(value), lines), offset: range?.[0] }]
    firsts.set(value, range?.[0])
    return []
  })
}

function namedTwice(name: string, first: number | undefined, lines: LineCounter): string {
  if (first === undefined || !NAME.test(name)) return 'a key is duplicated'
  const { line, col } = lines.linePos(first)
  return `the key ${name} is duplicated, first at line ${line}, column ${col}`
}

/** Finds the places of keys; the keys of each mapping are listed once, since a file may have many faults. */
function createPositions(
  document: Document,
  lines: LineCounter,
  sources: ReadonlyMap<Alias, Node>,
): YamlFile['positionOf'] {
  const listed = new Map<YAMLMap, ReadonlyMap<string, Pair>>()
  const pairOf = (map: YAMLMap, name: string): Pair | undefined => {
    let pairs = listed.get(map)
    if (pairs === undefined) {
      // The first of two equal keys.
      const backwards = map.items.toReversed()
      pairs = new Map(
        backwards.flatMap((pair) => (isScalar(pair.key) ? [[String(pair.key.value), pair] as const] : [])),
      )
      listed.set(map, pairs)
    }
    return pairs.get(name)
  }
  return (target) => {
    let node: unknown = document.contents
    let offset: number | undefined
    for (const segment of target.match(/[^.[\]]+/g) ?? []) {
      if (isAlias(node)) node = sources.get(node)
      let key: unknown
      if (isMap(node)) {
        const pair = pairOf(node, segment)
        key = pair?.key
        node = pair?.value
      } else if (isSeq(node)) {
        node = node.items[Number(segment)]
        key = node
      } else break
      if (!isNode(key)) break
      offset = key.range?.[0] ?? offset
    }
    if (offset === undefined) return undefined
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
}
