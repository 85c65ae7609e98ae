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

const samples = z.object({
  learners: z.array(z.string()),
  events: z.array(z.string()),
  codes: z.array(z.object({ id: z.string(), code: z.string() })),
  from: z.string(),
  to: z.string(),
})
const faults = z.array(z.object({ fault: z.unknown() })).transform((all) => all.map(({ fault }) => fault))

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
      const [accepted, school, set, values, differences] = await Promise.all(
        ['effects', 'samples', 'faults', 'values', 'differences'].map((path) => ask(path)),
      )
      return {
        effects: effects.parse(accepted),
        school: samples.parse(school),
        settings: { faults: faults.parse(set), values, differences },
      }
    },
    set: async (setting, value) => {
      await ask(setting, 'DELETE')
      if (value !== undefined) await ask(setting, 'PUT', value)
    },
  }
}
