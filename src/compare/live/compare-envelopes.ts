import type { ReplyForm } from '../../v2/index.ts'
import { typeClass } from './compare-part.ts'
import type { Findings } from './findings.ts'

/** A batch reply as a whole. */
export interface ReplyEnvelope {
  readonly status: number
  readonly contentType: string | undefined
  readonly form: ReplyForm
}

/** Sets what is around the parts of V2's reply against what the adapter would have written. */
export function compareEnvelopes(
  v2: ReplyEnvelope,
  v3: Pick<ReplyEnvelope, 'contentType' | 'form'>,
  findings: Findings,
): void {
  if (v2.status !== 200) findings.differ('reply/status', 'value', `status:${v2.status}`, 'status:200')
  const [own, built] = [essenceOf(v2.contentType), essenceOf(v3.contentType)]
  if (own !== built) findings.differ('reply/Content-Type', 'value', typeClass(own), typeClass(built))
  const [ownName, builtName] = [boundaryClass(v2.contentType), boundaryClass(v3.contentType)]
  if (ownName !== builtName) findings.differ('reply/boundary', 'value', ownName, builtName)
  const [ownLayout, builtLayout] = [layoutOf(v2.form), layoutOf(v3.form)]
  if (ownLayout !== builtLayout) findings.differ('reply/layout', 'value', ownLayout, builtLayout)
  else if (v2.form.changesets !== v3.form.changesets)
    findings.differ('reply/changesets', 'count', countOf(v2.form.changesets), countOf(v3.form.changesets))
  if (v2.form.parts.length !== v3.form.parts.length)
    findings.differ('reply/parts', 'count', countOf(v2.form.parts.length), countOf(v3.form.parts.length))
}

function layoutOf({ parts, changesets }: ReplyForm): string {
  if (parts.length === 0) return changesets === 0 ? 'layout:empty' : 'layout:nested'
  const nested = parts.filter(({ changeset }) => changeset !== undefined).length
  if (nested === 0) return 'layout:flat'
  return nested === parts.length ? 'layout:nested' : 'layout:mixed'
}

const essenceOf = (type: string | undefined): string | undefined =>
  type?.split(';', 1)[0]?.trim().toLowerCase()

/** Clients look for this prefix (service.md 4.2). */
const boundaryClass = (type: string | undefined): string =>
  /boundary="?batchresponse_/i.test(type ?? '') ? 'boundary:batchresponse_' : 'boundary:other'

const countOf = (count: number): string => (count > 9 ? 'count:10+' : `count:${count}`)
