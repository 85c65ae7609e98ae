import { z } from 'zod'
import { AdapterError } from '../../errors.ts'
import type { Operation } from './operation.ts'

const schema = z.object({
  requests: z
    .array(
      z.object({
        id: z.string().min(1),
        method: z.string().regex(/^[a-z]{1,16}$/i),
        url: z.string().min(1).max(32_768),
        atomicityGroup: z.string().min(1).optional(),
        dependsOn: z.array(z.string()).default([]),
        headers: z.record(z.string(), z.string()).default({}),
        body: z.unknown().optional(),
      }),
    )
    .max(20_000),
})

/**
 * Reads a JSON batch request (OData JSON format 19). Ids must be unique and come before those that depend on them; a group
 * is one run of requests. Errors: `ADP_BODY`.
 */
export function readJsonBatch(text: string): Operation[] {
  const parsed = schema.safeParse(parse(text))
  if (!parsed.success) throw refusal('The body is not a JSON batch request.')
  const { requests } = parsed.data
  const known = new Set<string>()
  const groups = new Set<string>()
  let open: string | undefined
  for (const { id, atomicityGroup, dependsOn } of requests) {
    if (known.has(id)) throw refusal('Two requests of the batch have the same id.')
    if (!dependsOn.every((name) => known.has(name) || groups.has(name)))
      throw refusal('A request depends on one that does not come before it.')
    if (atomicityGroup !== open) {
      open = atomicityGroup
      if (open !== undefined && groups.has(open)) throw refusal('An atomicity group is not in one piece.')
      if (open !== undefined) groups.add(open)
    }
    known.add(id)
  }
  return requests.map(({ id, method, url, atomicityGroup, dependsOn, headers, body }) => ({
    ...{ id, group: atomicityGroup, dependsOn, method: method.toUpperCase(), url },
    headers: new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    body: Buffer.from(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)),
  }))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const refusal = (message: string): AdapterError => new AdapterError('ADP_BODY', message)
