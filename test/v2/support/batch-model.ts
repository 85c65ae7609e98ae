import type { FlatRecord } from '../../../src/v2/record/decode-record.ts'

export interface HeaderStyle {
  readonly name: 'canonical' | 'lower' | 'upper'
  readonly separator: ':' | ': ' | ':\t' | ':  ' | ':\n '
}

/** A part of a batch: a record, its headers and their spelling. */
export interface PartModel {
  readonly contentId: string
  readonly idPlace: 'none' | 'mime' | 'http' | 'both'
  readonly partType: string
  /** True if the part has `Content-Transfer-Encoding: binary`. */
  readonly declaresBinary: boolean
  readonly target: string
  readonly prefersMinimal: boolean
  /** The HTTP headers that no other member describes. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly reversed: boolean
  readonly style: HeaderStyle
  readonly blankLines: {
    readonly beforeRequest: number
    readonly beforeJson: number
    readonly afterJson: number
  }
  readonly record: FlatRecord
  readonly json: string
}

export interface ChangesetModel {
  readonly boundary: string
  readonly preamble: string
  readonly epilogue: string
  readonly parts: readonly PartModel[]
}

/** A batch and its form. All texts have LF as line end. `lineEnds` says in a cycle whether a line end of the body becomes CRLF. */
export interface BatchModel {
  readonly boundary: string
  readonly quoted: boolean
  readonly bom: boolean
  readonly preamble: string
  readonly epilogue: string
  readonly padding: string
  readonly lineEnds: readonly boolean[]
  readonly items: readonly (PartModel | ChangesetModel)[]
}

export function isChangeset(item: PartModel | ChangesetModel): item is ChangesetModel {
  return 'parts' in item
}

/** Returns the parts of a batch in order, each with the position of its changeset, counted from 1. */
export function partsOf(batch: BatchModel): { part: PartModel; changeset: number | undefined }[] {
  let changesets = 0
  return batch.items.flatMap((item): { part: PartModel; changeset: number | undefined }[] => {
    if (!isChangeset(item)) return [{ part: item, changeset: undefined }]
    changesets += 1
    const changeset = changesets
    return item.parts.map((part) => ({ part, changeset }))
  })
}

/** Returns the text of a batch up to its closing delimiter, with LF at line ends. */
export function writeEnvelope(batch: BatchModel): string {
  const { boundary, padding } = batch
  const items = batch.items.map((item) => {
    const content = isChangeset(item) ? writeChangeset(item, padding) : writePart(item)
    return `--${boundary}${padding}\n${content}\n`
  })
  return `${batch.bom ? '\ufeff' : ''}${batch.preamble}${items.join('')}--${boundary}--`
}

/** Returns the bytes of a text with the line ends of the batch. */
export function toBytes(text: string, lineEnds: readonly boolean[]): Buffer {
  let count = 0
  return Buffer.from(
    text.replaceAll('\n', () => {
      count += 1
      return lineEnds[count % lineEnds.length] === true ? '\r\n' : '\n'
    }),
  )
}

export function writeBatch(batch: BatchModel): Buffer {
  return toBytes(`${writeEnvelope(batch)}${batch.padding}${batch.epilogue}`, batch.lineEnds)
}

function writeChangeset(changeset: ChangesetModel, padding: string): string {
  const { boundary, preamble, epilogue, parts } = changeset
  const body = parts.map((part) => `--${boundary}${padding}\n${writePart(part)}\n`).join('')
  return `Content-Type: multipart/mixed; boundary="${boundary}"\n\n${preamble}${body}--${boundary}--${padding}${epilogue}`
}

export function writePart(part: PartModel): string {
  const id: [string, string][] = [['Content-ID', part.contentId]]
  const mime: [string, string][] = [
    ['Content-Type', part.partType],
    ...(part.declaresBinary ? [['Content-Transfer-Encoding', 'binary'] as [string, string]] : []),
    ...(part.idPlace === 'mime' || part.idPlace === 'both' ? id : []),
  ]
  const http: (readonly [string, string])[] = [
    ...part.headers,
    ...(part.prefersMinimal ? [['Prefer', 'return=minimal'] as const] : []),
    ...(part.idPlace === 'http' || part.idPlace === 'both' ? id : []),
  ]
  const { beforeRequest, beforeJson, afterJson } = part.blankLines
  return (
    `${writeHeaders(mime, part)}${'\n'.repeat(1 + beforeRequest)}` +
    `POST ${part.target} HTTP/1.1\n${writeHeaders(http, part)}${'\n'.repeat(1 + beforeJson)}` +
    `${part.json}${'\n'.repeat(afterJson)}`
  )
}

function writeHeaders(
  headers: readonly (readonly [string, string])[],
  { reversed, style }: PartModel,
): string {
  const ordered = reversed ? headers.toReversed() : headers
  return ordered.map(([name, value]) => `${writeName(name, style)}${style.separator}${value}\n`).join('')
}

function writeName(name: string, { name: style }: HeaderStyle): string {
  return style === 'canonical' ? name : style === 'lower' ? name.toLowerCase() : name.toUpperCase()
}
