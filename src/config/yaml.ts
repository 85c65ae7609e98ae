import {
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  stringify,
  visit,
} from 'yaml'

import type { ErrorDetail } from '../errors.ts'
import type { Config, PartnerConfig } from './schema.ts'

/** Formats the configuration as YAML with every default. Secrets appear as `[secret]`, and addresses as text. */
export function printConfig(config: Config): string {
  return stringify(JSON.parse(JSON.stringify(config)))
}

export function printPartner(partner: PartnerConfig): string {
  return stringify(JSON.parse(JSON.stringify(partner)))
}

/**
 * Returns the text of a configuration with one more partner, or `undefined` if the text has no list of partners. Changes no other
 * character. Inserts the new partner before the first partner with `match.any`, which would otherwise get all requests.
 */
export function addPartner(text: string, partner: object): string | undefined {
  const list: unknown = parseDocument(text).get('partners')
  if (!isSeq(list)) return undefined
  const items = list.items.filter((item) => isMap(item))
  const open = items.find((item) => item.getIn(['match', 'any']) === true)
  const [begin, end, next] = (open ?? items.at(-1))?.range ?? []
  if (begin === undefined || end === undefined || next === undefined) return undefined
  const put = (at: number, added: string): string => text.slice(0, at) + added + text.slice(at)
  if (list.flow === true) {
    const added = JSON.stringify(partner)
    return open === undefined ? put(end, `, ${added}`) : put(begin, `${added}, `)
  }
  const lineOf = (offset: number): number => text.lastIndexOf('\n', offset - 1) + 1
  const dash = text.lastIndexOf('-', begin - 1)
  const indent = ' '.repeat(dash - lineOf(dash))
  const lines = stringify([partner], { lineWidth: 0 }).replaceAll(/^(?=.)/gm, indent)
  if (open === undefined) return put(next, text[next - 1] === '\n' ? lines : `\n${lines}`)
  // Inserts the lines above the comment of the next partner, so that the comment stays with its partner.
  let at = lineOf(dash)
  while (/^\s*#/.test(text.slice(lineOf(at - 1), at))) at = lineOf(at - 1)
  return put(at, lines)
}

/** A position in the file. Lines and columns count from 1. */
export interface FilePosition {
  readonly line: number
  readonly column: number
}

export type FileFault = ErrorDetail & Partial<FilePosition>

export interface YamlFile {
  /** The value of the file, or `undefined` if a fault makes the whole file unreadable. */
  readonly value: unknown
  readonly faults: readonly FileFault[]
  /** Returns the position of a key such as `partners[0].v3.budgetMs`, or of the nearest enclosing key that the file contains. */
  readonly positionOf: (target: string) => FilePosition | undefined
}

/**
 * Returns a message with the parser's name for a fault, such as `missing char`. The parser's own message may quote a secret from the line.
 */
const causeOf = (code: ErrorCode): string => `not valid YAML: ${code.toLowerCase().replaceAll('_', ' ')}`

/** Parser errors that leave the rest of the file readable, so that the other faults of the file can be listed too. */
const harmless: ReadonlySet<ErrorCode> = new Set(['MULTIPLE_DOCS'])

/** Parses YAML. Each fault has a cause in words, and a line and a column where they are known. No fault quotes a value of the file. */
export function readYaml(text: string): YamlFile {
  const lines = new LineCounter()
  const at = (offset = 0): FilePosition => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  try {
    // `uniqueKeys` is off because the parser's check takes quadratic time. The visitor below finds duplicate keys.
    const options = {
      lineCounter: lines,
      prettyErrors: false,
      logLevel: 'error',
      uniqueKeys: false,
      merge: true,
    } as const
    const document = parseDocument(text, options)
    // One fault replaces all errors, because their number and positions depend on how deep the parser's call stack can be.
    if (document.errors.some(({ code }) => code === 'RESOURCE_EXHAUSTION')) return unreadable(TOO_DEEP)
    let isReadable = document.errors.every(({ code }) => harmless.has(code))
    const faults: FileFault[] = document.errors.map(({ code, pos }) => ({
      code: 'yaml',
      message: causeOf(code),
      ...at(pos[0]),
    }))
    visit(document, {
      Map: (_key, { items }) => {
        const known = new Set<unknown>()
        for (const { key } of items) {
          if (!isScalar(key)) continue
          if (known.has(key.value))
            faults.push({ code: 'yaml', message: causeOf('DUPLICATE_KEY'), ...at(key.range?.[0]) })
          known.add(key.value)
        }
      },
      Alias: (_key, alias, path) => {
        const source = alias.resolve(document)
        if (source !== undefined && !path.includes(source)) return
        const cause = source === undefined ? 'no earlier anchor' : 'the value that contains the alias'
        faults.push({ code: 'yaml', message: `the alias refers to ${cause}`, ...at(alias.range?.[0]) })
        isReadable = false
      },
    })
    return {
      value: isReadable ? (document.toJS() as unknown) : undefined,
      faults: firstAtEachPlace(faults),
      positionOf: (target) => {
        let node: unknown = document.contents
        let offset: number | undefined
        for (const segment of target.match(/[^.[\]]+/g) ?? []) {
          if (isAlias(node)) node = node.resolve(document)
          const pair = isMap(node)
            ? node.items.find(({ key }) => isScalar(key) && String(key.value) === segment)
            : undefined
          const item = isSeq(node) ? node.items[Number(segment)] : undefined
          const key = pair?.key ?? item
          if (!isNode(key)) break
          offset = key.range?.[0] ?? offset
          node = pair?.value ?? item
        }
        return offset === undefined ? undefined : at(offset)
      },
    }
  } catch (error) {
    // The parser throws a ReferenceError if aliases would expand the file too far.
    if (error instanceof ReferenceError)
      return unreadable('the aliases expand the file to more than 100 times its size')
    return unreadable(
      error instanceof RangeError ? TOO_DEEP : 'a merge key (<<) must name a mapping, or a list of mappings',
    )
  }
}

const TOO_DEEP = 'the values are nested too deeply'

const unreadable = (message: string): YamlFile => ({
  value: undefined,
  faults: [{ code: 'yaml', message }],
  positionOf: () => undefined,
})

/** Returns the first fault at each position. Further faults at the same position are consequences of the first fault. */
function firstAtEachPlace(faults: readonly FileFault[]): FileFault[] {
  const places = new Map<string, FileFault>()
  for (const fault of faults) {
    const place = `${fault.line ?? ''}:${fault.column ?? ''}`
    if (!places.has(place)) places.set(place, fault)
  }
  return [...places.values()]
}
