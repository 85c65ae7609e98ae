import { absence, type Findings } from './findings.ts'
import { type FlatMark, isObject } from './flat-mark.ts'

/** The members of an entry of the array (service.md 7). */
const members = ['ErrorCode', 'Message', 'ResourceIdentifier'] as const

/** Sets the error array of V2's part against the one that the adapter would have written; entries in the order of their codes. */
export function compareErrors(v2: unknown, v3: unknown, findings: Findings): void {
  if (!Array.isArray(v2) || !Array.isArray(v3)) {
    if (Array.isArray(v2) !== Array.isArray(v3)) findings.differ('errors', 'type', formOf(v2), formOf(v3))
    return
  }
  const [own, built] = [inOrder(v2), inOrder(v3)]
  if (own.length !== built.length)
    findings.differ('errors', 'count', `count:${own.length}`, `count:${built.length}`)
  for (const [index, entry] of own.entries()) {
    const other = built[index]
    if (other !== undefined) compareEntry(entry, other, findings)
  }
}

/** The codes of an error array. */
export function codesOf(body: unknown): readonly string[] {
  const entries = Array.isArray(body) ? body.filter(isObject) : []
  return entries.flatMap(({ ErrorCode }) =>
    typeof ErrorCode === 'string' && isCode(ErrorCode) ? [ErrorCode] : [],
  )
}

function compareEntry(v2: FlatMark, v3: FlatMark, findings: Findings): void {
  for (const name of members) {
    const [own, built] = [v2[name], v3[name]]
    const path = `errors/${name}`
    if (own === undefined && built === undefined) continue
    if (own === undefined || built === undefined)
      findings.differ(path, absence(own), ...classes(name, own, built))
    else if (own !== built) findings.differ(path, 'value', ...classes(name, own, built))
  }
  if (typeof v2['SequenceID'] === 'string') findings.equal('servers-own-value', 'errors/SequenceID')
  else findings.differ('errors/SequenceID', 'extra', 'field:none', 'field:set')
  const others = Object.keys(v2).filter((name) => name !== 'SequenceID' && !isMember(name))
  if (others.length > 0) findings.differ('errors/(other)', 'missing', 'field:set', 'field:none')
}

const isMember = (name: string): boolean => members.some((own) => own === name)

const classes = (name: string, v2: unknown, v3: unknown): [string, string] => [
  classOf(name, v2),
  classOf(name, v3),
]

function classOf(name: string, value: unknown): string {
  if (value === undefined) return 'field:none'
  if (typeof value !== 'string') return 'text:none'
  if (name === 'ErrorCode') return isCode(value) ? `error:${value}` : 'error:other'
  return value === '' ? 'text:empty' : 'text:other'
}

/** A name, as services write codes: no text. */
const isCode = (text: string): boolean => /^[A-Z][A-Z_]{0,30}\d{0,3}$/.test(text)

const formOf = (value: unknown): string =>
  Array.isArray(value) ? 'json:array' : isObject(value) ? 'json:object' : 'json:none'

function inOrder(entries: readonly unknown[]): readonly FlatMark[] {
  const key = ({ ErrorCode }: FlatMark): string => (typeof ErrorCode === 'string' ? ErrorCode : '')
  return entries
    .filter(isObject)
    .sort((one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0))
}
