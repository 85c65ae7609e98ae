import type { ErrorDetail } from '../../errors.ts'

/** An answer before it is on the wire. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** Media type of data: by default with the annotations a client needs and no more (OData JSON format 3.1). */
export function jsonMediaType(level: 'none' | 'minimal' | 'full' = 'minimal'): string {
  return `application/json; odata.metadata=${level}`
}

const odataHeaders = { 'Content-Type': jsonMediaType(), 'OData-Version': '4.0' }

/** A JSON answer of the data service; `body` is JSON text. */
export function jsonReply(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return { status, headers: { ...odataHeaders, ...headers }, body }
}

/**
 * An error of the data service in the OData form (OData JSON format 21.1), which service-facts 12 expects of V3.
 * Codes that the service shows are ATT_VAL_2 and ATT_VAL_3; all others are this sandbox's own.
 */
export function odataError(
  status: number,
  code: string,
  message: string,
  details: readonly ErrorDetail[] = [],
): Reply {
  const error = details.length === 0 ? { code, message } : { code, message, details }
  return jsonReply(status, JSON.stringify({ error }))
}

/** An error of the gateway in front of the service (service-facts 9, 12). */
export function gatewayError(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return {
    status,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ statusCode: status, message }),
  }
}
