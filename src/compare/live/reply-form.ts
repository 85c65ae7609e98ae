import type { BatchReply, ReplyPart } from '../../v2/index.ts'
import { compareMark } from '../diff/compare-mark.ts'
import type { Findings, OwnRules } from '../diff/findings.ts'
import { isMembers, type Members } from '../diff/values.ts'
import type { DifferenceKind } from '../verdict.ts'
import { unreadable, unwrapped } from './marks.ts'

export interface ReplyEnvelope {
  readonly status: number
  readonly contentType: string | undefined
  readonly form: BatchReply
}

/** Compares the status, the headers and the structure of V2's reply with those of the reply that the adapter would have written. */
export function compareEnvelopes(v2: ReplyEnvelope, v3: ReplyEnvelope, findings: Findings): void {
  const differ = differIn(findings)
  differ('reply/status', 'value', v2.status, v3.status, statusClass)
  differ('reply/Content-Type', 'value', essenceOf(v2.contentType), essenceOf(v3.contentType), typeClass)
  differ('reply/boundary', 'value', boundaryClass(v2.contentType), boundaryClass(v3.contentType), identity)
  if (!differ('reply/layout', 'value', layoutOf(v2.form), layoutOf(v3.form), identity))
    differ('reply/changesets', 'count', v2.form.changesets, v3.form.changesets, countClass)
  differ('reply/parts', 'count', v2.form.parts.length, v3.form.parts.length, countClass)
}

/** Compares a part of the reply of V2, except its body, with the part that the adapter would have written. */
export function comparePartForm(v2: ReplyPart, v3: ReplyPart, findings: Findings): void {
  const differ = differIn(findings)
  const reasonClass = (reason: string): string =>
    reason === '' ? 'reason:none' : reason === v3.reason ? 'reason:standard' : 'reason:other'
  const placeClass = (changeset: number | undefined): string =>
    changeset === undefined ? 'place:batch' : 'place:changeset'
  const isOther = differ('part/status', 'value', v2.status, v3.status, statusClass)
  if (!isOther) differ('part/reason', 'value', v2.reason, v3.reason, reasonClass)
  differ('part/changeset', 'value', v2.changeset, v3.changeset, placeClass)
  const [own, built] = [contentIdOf(v2), contentIdOf(v3)]
  if (!differ('part/Content-ID', 'value', own.place, built.place, identity) && own.value !== built.value)
    findings.differ('part/Content-ID', 'value', ['id:other', 'id:posted'])
  compareFields('part', v2.mime, v3.mime, findings)
  // Header fields of parts with different statuses are not comparable.
  if (!isOther) compareFields('part/http', v2.http, v3.http, findings)
}

/** Compares the body of V2's part with the body that the adapter would have written. Both are results of `readBody`. */
export function compareBodies(
  v2: unknown,
  v3: unknown,
  rules: OwnRules | undefined,
  findings: Findings,
): void {
  if (v2 === undefined && v3 === undefined) return
  if (v2 === undefined || v3 === undefined) {
    findings.differ('part/body', absenceKind(v2), [formClass(v2), formClass(v3)])
    return
  }
  const [own, built] = [unwrapped(v2, isOnlyMember), unwrapped(v3, isOnlyMember)]
  const envelopeClass = (isWrapped: boolean): string => (isWrapped ? 'envelope:d' : 'envelope:none')
  differIn(findings)('part/envelope', 'type', own !== v2, built !== v3, envelopeClass)
  if (!isMembers(own) || !isMembers(built)) {
    compareErrors(own, built, findings)
    return
  }
  for (const name of ['@odata.context', '@odata.type'])
    compareAnnotation(`part/${name}`, own[name], built[name], findings)
  findings.add(compareMark(own, built, { rules }))
}

/** Returns true if `d` is the only member of a body. An envelope has no other member, but a record may have a member named `d`. */
const isOnlyMember = (body: Members): boolean => Object.keys(body).length === 1

/**
 * Creates a function that adds a difference if two values are unequal, described by their classes. Returns true if the values are unequal.
 */
const differIn =
  (findings: Findings) =>
  <Value>(
    path: string,
    kind: DifferenceKind,
    v2: Value,
    v3: Value,
    classOf: (value: Value) => string,
  ): boolean => {
    if (v2 !== v3) findings.differ(path, kind, [classOf(v2), classOf(v3)])
    return v2 !== v3
  }

const absenceKind = (v2: unknown): DifferenceKind => (v2 === undefined ? 'extra' : 'missing')

const identity = (name: string): string => name
const statusClass = (status: number): string => `status:${status}`
const countClass = (count: number): string => (count > 9 ? 'count:10+' : `count:${count}`)
const fieldClass = (value: unknown): string => (value === undefined ? 'field:none' : 'field:set')

function layoutOf({ parts, changesets }: BatchReply): string {
  if (parts.length === 0) return changesets === 0 ? 'layout:empty' : 'layout:nested'
  const nested = parts.filter(({ changeset }) => changeset !== undefined).length
  if (nested === 0) return 'layout:flat'
  return nested === parts.length ? 'layout:nested' : 'layout:mixed'
}

const essenceOf = (type: string | undefined): string | undefined =>
  type?.split(';', 1)[0]?.trim().toLowerCase()

/** Returns the class of a boundary. Clients look for the prefix `batchresponse_` (service.md 4.2). */
const boundaryClass = (type: string | undefined): string =>
  /boundary="?batchresponse_/i.test(type ?? '') ? 'boundary:batchresponse_' : 'boundary:other'

/** The media types that may appear in the name of a class. Any other type could be free text, and a class must not show such text. */
const knownType =
  /^(?:application\/(?:http|json|xml|problem\+json)|multipart\/mixed|text\/(?:plain|html))(?:;[a-z0-9.=_-]{1,40}){0,3}$/

function typeClass(value: string | undefined): string {
  if (value === undefined) return 'type:none'
  const plain = plainType(value)
  return knownType.test(plain) ? `type:${plain}` : 'type:other'
}

const plainType = (value: string): string => value.toLowerCase().replaceAll(/\s+/g, '')

/** Returns the Content-ID of a part, and the kind of headers (MIME, HTTP or both) in which it is written. */
export function contentIdOf({ mime, http }: ReplyPart): {
  readonly place: string
  readonly value: string | undefined
} {
  const [inMime, inHttp] = [mime, http].map((lines) => new Map(lines).get('content-id'))
  const places = [inMime === undefined ? '' : 'mime', inHttp === undefined ? '' : 'http'].join('')
  return { place: `in:${places === '' ? 'none' : places}`, value: inMime ?? inHttp }
}

/** The header fields that may appear in a path. Any other name could be free text, and a path must not show such text. */
const shownFields = new Map(
  [
    'Content-Type',
    'Content-Transfer-Encoding',
    'Content-ID',
    'Content-Length',
    'OData-Version',
    'OData-EntityId',
    'Location',
    'ETag',
    'Preference-Applied',
    'Cache-Control',
    'DataServiceVersion',
  ].map((name) => [name.toLowerCase(), name]),
)

function compareFields(
  place: string,
  v2: ReplyPart['mime'],
  v3: ReplyPart['mime'],
  findings: Findings,
): void {
  const [ofV2, ofV3] = [new Map(v2), new Map(v3)]
  for (const name of new Set([...ofV2.keys(), ...ofV3.keys()])) {
    if (name === 'content-id') continue
    const path = `${place}/${shownFields.get(name) ?? '(other)'}`
    const [own, built] = [ofV2.get(name), ofV3.get(name)]
    if (own === undefined || built === undefined)
      findings.differ(path, absenceKind(own), [fieldClass(own), fieldClass(built)])
    else if (name === 'content-type') compareType(path, own, built, findings)
    else if (name === 'content-transfer-encoding' && own.toLowerCase() !== built.toLowerCase())
      findings.differ(path, 'value', ['encoding:other', 'encoding:binary'])
  }
}

/** Compares media types. Parameters of JSON have no effect, but parameters of `application/http` decide whether a client can read the part. */
function compareType(path: string, v2: string, v3: string, findings: Findings): void {
  const types = [plainType(v2), plainType(v3)]
  if (types[0] === types[1]) return
  if (types.every((type) => type.startsWith('application/json')))
    findings.agree('media-type-parameters', path)
  else findings.differ(path, 'value', [typeClass(v2), typeClass(v3)])
}

/** Compares OData annotations. A context contains the address that the client called, so only its fragment is compared. */
function compareAnnotation(path: string, v2: unknown, v3: unknown, findings: Findings): void {
  const fragmentOf = (value: unknown): string => String(value).replace(/^[^#]*#/, '')
  if (v2 === v3) return
  if (v2 === undefined || v3 === undefined)
    findings.differ(path, absenceKind(v2), [fieldClass(v2), fieldClass(v3)])
  else if (fragmentOf(v2) === fragmentOf(v3)) findings.agree('context-address', path)
  else findings.differ(path, 'value', [fieldClass(v2), fieldClass(v3)])
}

function formClass(value: unknown): string {
  if (value === undefined) return 'json:none'
  if (value === unreadable) return 'json:broken'
  return Array.isArray(value) ? 'json:array' : 'json:object'
}

const errorMembers = ['ErrorCode', 'Message', 'ResourceIdentifier']

/**
 * Compares the entries of the error arrays (service.md 7) in a V2 part and in the part that the adapter would have written, sorted by code.
 */
function compareErrors(v2: unknown, v3: unknown, findings: Findings): void {
  if (!Array.isArray(v2) || !Array.isArray(v3)) {
    const classOf = (value: unknown): string =>
      Array.isArray(value) ? 'json:array' : isMembers(value) ? 'json:object' : 'json:none'
    if (Array.isArray(v2) !== Array.isArray(v3)) findings.differ('errors', 'type', [classOf(v2), classOf(v3)])
    return
  }
  const [own, built] = [inOrder(v2), inOrder(v3)]
  if (own.length !== built.length)
    findings.differ('errors', 'count', [`count:${own.length}`, `count:${built.length}`])
  for (const [index, entry] of own.entries()) {
    const other = built[index]
    if (other !== undefined) compareEntry(entry, other, findings)
  }
}

function compareEntry(v2: Members, v3: Members, findings: Findings): void {
  for (const name of errorMembers) {
    const [own, built] = [v2[name], v3[name]]
    if (own === built) continue
    const kind = own === undefined || built === undefined ? absenceKind(own) : 'value'
    findings.differ(`errors/${name}`, kind, [errorClass(name, own), errorClass(name, built)])
  }
  if (typeof v2['SequenceID'] === 'string') findings.agree('servers-own-value', 'errors/SequenceID')
  else findings.differ('errors/SequenceID', 'extra', ['field:none', 'field:set'])
  if (Object.keys(v2).some((name) => name !== 'SequenceID' && !errorMembers.includes(name)))
    findings.differ('errors/(other)', 'missing', ['field:set', 'field:none'])
}

function errorClass(name: string, value: unknown): string {
  if (value === undefined) return 'field:none'
  if (typeof value !== 'string') return 'text:none'
  if (name === 'ErrorCode') return isCode(value) ? `error:${value}` : 'error:other'
  return value === '' ? 'text:empty' : 'text:other'
}

/** Returns true for a text in the form of an error code, which may appear in the name of a class. */
const isCode = (text: string): boolean => /^[A-Z][A-Z_]{0,30}\d{0,3}$/.test(text)

const codeOf = ({ ErrorCode }: Members): string => (typeof ErrorCode === 'string' ? ErrorCode : '')

function inOrder(entries: readonly unknown[]): readonly Members[] {
  return entries
    .filter(isMembers)
    .sort((one, other) => (codeOf(one) < codeOf(other) ? -1 : codeOf(one) > codeOf(other) ? 1 : 0))
}
