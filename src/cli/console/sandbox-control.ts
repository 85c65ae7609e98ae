import { request } from 'undici'
import * as z from 'zod'

import type { ConsolePorts } from '../../console/ports.ts'

const effects = z.array(
  z.object({
    seq: z.number(),
    face: z.string(),
    learner: z.string(),
    event: z.string(),
    externalId: z.string(),
  }),
)

/** Creates the switches of a sandbox by its control routes, which any program on this machine may call. */
export function createSandboxControl(url: string): NonNullable<ConsolePorts['sandbox']> {
  const ask = async (
    path: string,
    method: 'GET' | 'PUT' | 'DELETE' = 'GET',
    body?: unknown,
  ): Promise<unknown> => {
    const reply = await request(`${url}/_sandbox/${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    const text = await reply.body.text()
    return text === '' ? undefined : (JSON.parse(text) as unknown)
  }
  return {
    read: async () => {
      const [accepted, faults] = await Promise.all([ask('effects'), ask('faults')])
      return { effects: effects.parse(accepted), faults: z.array(z.unknown()).parse(faults).length }
    },
    setFaults: async (faults) => {
      await ask('faults', 'DELETE')
      if (faults.length > 0) await ask('faults', 'PUT', faults)
    },
  }
}
