import { isGuid } from '../../odata/index.ts'
import { compareMark, type OwnRules } from '../diff/index.ts'
import { compareErrors } from './compare-errors.ts'
import { absence, type Findings } from './findings.ts'
import { type FlatMark, isObject } from './flat-mark.ts'

/** Sets the body of V2's part against that of the part that the adapter would have written, both as parsed JSON; undefined: no body. */
export function compareBodies(
  v2: unknown,
  v3: unknown,
  rules: OwnRules | undefined,
  findings: Findings,
): void {
  if (v2 === undefined && v3 === undefined) return
  if (v2 === undefined || v3 === undefined) {
    findings.differ('part/body', absence(v2), formOf(v2), formOf(v3))
    return
  }
  const [own, built] = [withoutEnvelope(v2), withoutEnvelope(v3)]
  if (own.hasEnvelope !== built.hasEnvelope)
    findings.differ('part/envelope', 'type', envelopeClass(own), envelopeClass(built))
  const [ownMark, builtMark] = [own.value, built.value]
  if (!isObject(ownMark) || !isObject(builtMark)) {
    compareErrors(ownMark, builtMark, findings)
    return
  }
  compareAnnotations(ownMark, builtMark, findings)
  findings.add(compareMark(ownMark, builtMark, rules === undefined ? {} : { rules }))
}

const annotations = ['@odata.context', '@odata.type'] as const

/** The context names the address that the client has called: only what it says of the record counts. */
function compareAnnotations(v2: FlatMark, v3: FlatMark, findings: Findings): void {
  for (const name of annotations) {
    const [own, built] = [v2[name], v3[name]]
    const path = `part/${name}`
    if (own === built) continue
    if (own === undefined || built === undefined)
      findings.differ(path, absence(own), annotationClass(own), annotationClass(built))
    else if (fragmentOf(own) === fragmentOf(built)) findings.equal('context-address', path)
    else findings.differ(path, 'value', annotationClass(own), annotationClass(built))
  }
}

const fragmentOf = (value: unknown): string => String(value).replace(/^[^#]*#/, '')

const annotationClass = (value: unknown): string => (value === undefined ? 'field:none' : 'field:set')

function withoutEnvelope(value: unknown): { readonly value: unknown; readonly hasEnvelope: boolean } {
  const inner = isObject(value) && Object.keys(value).length === 1 ? value['d'] : undefined
  return isObject(inner) ? { value: inner, hasEnvelope: true } : { value, hasEnvelope: false }
}

const envelopeClass = ({ hasEnvelope }: { readonly hasEnvelope: boolean }): string =>
  hasEnvelope ? 'envelope:d' : 'envelope:none'

function formOf(value: unknown): string {
  if (value === undefined) return 'json:none'
  if (value === unreadable) return 'json:broken'
  return Array.isArray(value) ? 'json:array' : 'json:object'
}

/** Stands for a body that is not JSON. */
export const unreadable = Symbol('unreadable')

/** The JSON of a body; undefined for an empty one. */
export function readBody(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return unreadable
  }
}

/** The id of a mark, in one case. */
export function idOfMark(mark: FlatMark): string | undefined {
  const id = mark['ExternalID']
  return typeof id === 'string' && isGuid(id) ? id.toLowerCase() : undefined
}
