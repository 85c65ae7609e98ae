import { AdapterError } from '../../errors.ts'
import { type Actor, sees } from '../../rollout/operators.ts'
import { MAX_REASON } from '../../rollout/stage.ts'
import type { Scope } from '../data/port.ts'
import type { SignedIn } from './sessions.ts'

/** The maximum size of an uploaded file in bytes, since the file is decoded while the page waits. */
export const MAX_FILE_BYTES = 4 * 1_048_576

export interface Visit {
  readonly signedIn: SignedIn
  readonly actor: Actor
  readonly scope: Scope
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly form: URLSearchParams
  readonly file: Buffer | undefined
}

/**
 * Returns the partner in the path. Throws `ADP_NOT_FOUND` if the person may not see the partner, but does not check whether the partner
 * exists.
 */
export function visiblePartner({ actor, params }: Visit): string {
  const { partner = '' } = params
  if (sees(actor, partner) && !partner.includes('\0')) return partner
  throw notFound('partner')
}

type Params<Name extends string> = { readonly [Own in Name]?: string | undefined }

/**
 * Returns parameters of the query. A parameter that contains only white space counts as missing. NULs are removed, since PostgreSQL accepts
 * no text with a NUL.
 */
export const paramsOf = <const Name extends string>(query: URLSearchParams, names: readonly Name[]) =>
  Object.fromEntries(
    names.map((name) => [name, query.get(name)?.replaceAll('\0', '').trim() || undefined]),
  ) as Params<Name>

/** Returns a number from the path, at least 1. Throws `ADP_NOT_FOUND` if the parameter is not a number. */
export function numberOf({ params }: Visit, name: string): number {
  const text = params[name] ?? ''
  if (!/^[1-9]\d{0,14}$/.test(text)) throw notFound(name)
  return Number(text)
}

export const notFound = (what: string): AdapterError =>
  new AdapterError(
    'ADP_NOT_FOUND',
    `There is no such ${what}. Nothing was changed. Check the address, or go back to the list.`,
  )

export const usageError = (what: string): AdapterError => new AdapterError('ADP_USAGE', what)

export const forbidden = (why: string): AdapterError => new AdapterError('ADP_FORBIDDEN', why)

export function expectOperator({ actor }: Visit): void {
  if (actor.role === 'operator') return
  throw forbidden(
    `${actor.name} has the role ${actor.role}, which does not allow this action. Nothing was done. Ask a person with the role operator.`,
  )
}

/** Returns the reason in a form, for the audit trail. Throws `ADP_USAGE` if the reason is too long, or is missing and not optional. */
export function reasonOf({ form }: Visit, isOptional = false): string {
  const reason = (form.get('reason') ?? '').trim()
  if ((reason !== '' || isOptional) && reason.length <= MAX_REASON) return reason
  throw usageError(
    `The reason is missing or too long. Nothing was done. Give a reason of 1 to ${MAX_REASON} characters for the audit trail.`,
  )
}
