import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
} from 'yaml'

import type { ErrorDetail } from '../errors.ts'

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
  /** Where a key such as `partners[0].v3.budgetMs` stands, or what it would stand in. */
  readonly positionOf: (target: string) => FilePosition | undefined
}

/** The parser's own messages quote the line, which may hold a secret. */
const causes: Readonly<Partial<Record<ErrorCode, string>>> = {
  ALIAS_PROPS: 'an alias has an anchor or a tag',
  BAD_ALIAS: 'an alias has no name, or names no anchor before it',
  BAD_DIRECTIVE: 'a directive is not known',
  BAD_DQ_ESCAPE: 'a text in double quotes has an unknown escape',
  BAD_INDENT: 'the indentation does not fit the lines before',
  BAD_PROP_ORDER: 'an anchor or a tag stands in the wrong place',
  BAD_SCALAR_START: 'a text begins with a character that needs quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a nested mapping stands on the line of a key',
  BLOCK_IN_FLOW: 'a block stands inside brackets or braces',
  DUPLICATE_KEY: 'a key is there twice',
  MISSING_CHAR: 'a quote, bracket, brace, colon or comma is missing',
  MULTILINE_IMPLICIT_KEY: 'a key goes over several lines, or its colon is missing',
  MULTIPLE_ANCHORS: 'a value has two anchors',
  MULTIPLE_DOCS: 'a second document begins; the file must have one',
  MULTIPLE_TAGS: 'a value has two tags',
  RESOURCE_EXHAUSTION: 'the file is nested too deeply',
  TAB_AS_INDENT: 'a tab is used for indentation',
  TAG_RESOLVE_FAILED: 'a tag does not fit its value',
  UNEXPECTED_TOKEN: 'something stands where it cannot stand',
  BAD_COLLECTION_TYPE: 'a tag does not fit its value',
}

/** What leaves the rest readable, so that its faults are found as well. */
const harmless: ReadonlySet<ErrorCode> = new Set(['DUPLICATE_KEY', 'MULTIPLE_DOCS'])

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
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' })
    const faults: FileFault[] = document.errors.map(({ code, pos }) => ({
      code: 'yaml',
      message:
        (code === 'DUPLICATE_KEY' ? namedTwice(document, lines, pos[0]) : undefined) ??
        causes[code] ??
        'it is not YAML',
      ...at(pos[0]),
    }))
    const aliases = wrongAliases(document)
    for (const { message, offset } of aliases) faults.push({ code: 'yaml', message, ...at(offset) })
    const isReadable = aliases.length === 0 && document.errors.every(({ code }) => harmless.has(code))
    const value: unknown = isReadable ? document.toJS() : undefined
    return {
      value,
      faults: faults.filter(isFirstThere),
      positionOf: (target) => positionOf(document, lines, target),
    }
  } catch (error) {
    // An alias that multiplies itself, or nesting that no stack holds.
    return nothing(
      error instanceof ReferenceError
        ? 'its aliases stand for more than 100 times what is written'
        : 'it cannot be read: it is nested too deeply',
    )
  }
}

/** One fault at a place: what follows from it is found there as well. */
function isFirstThere({ line, column }: FileFault, index: number, all: readonly FileFault[]): boolean {
  return all.findIndex((other) => other.line === line && other.column === column) === index
}

/** Aliases that name nothing, or something around themselves. */
function wrongAliases(document: Document.Parsed): { message: string; offset: number | undefined }[] {
  const wrong: { message: string; offset: number | undefined }[] = []
  visit(document, {
    Alias: (_key, alias, path) => {
      const source = alias.resolve(document)
      const offset = alias.range?.[0]
      if (source === undefined) wrong.push({ message: 'an alias names no anchor before it', offset })
      else if (path.includes(source)) wrong.push({ message: 'an alias stands inside what it names', offset })
    },
  })
  return wrong
}

/** What a key is called, without what could be a text in the wrong place. */
const NAME = /^[\w.-]{1,64}$/

/** The name of the key at `offset`, and where the same mapping has it first; undefined where it is no plain name. */
function namedTwice(document: Document.Parsed, lines: LineCounter, offset: number): string | undefined {
  let message: string | undefined
  visit(document, {
    Map: (_key, { items }) => {
      const keys = items.flatMap(({ key }) => (isScalar(key) ? [key] : []))
      const second = keys.find(({ range }) => range?.[0] === offset)
      const first = keys.find(({ value }) => value === second?.value)
      const name = String(second?.value)
      const at = first?.range?.[0]
      if (second === undefined || at === undefined || !NAME.test(name)) return undefined
      const { line, col } = lines.linePos(at)
      message = `the key ${name} is there twice, first at line ${line}, column ${col}`
      return visit.BREAK
    },
  })
  return message
}

function positionOf(document: Document, lines: LineCounter, target: string): FilePosition | undefined {
  let node: unknown = document.contents
  let offset: number | undefined
  for (const segment of target.match(/[^.[\]]+/g) ?? []) {
    if (isAlias(node)) node = node.resolve(document)
    let key: unknown
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === segment)
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
