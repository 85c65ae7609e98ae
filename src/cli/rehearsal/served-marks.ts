import { request } from 'undici'
import * as z from 'zod'

const effectsSchema = z.array(z.object({ seq: z.number(), face: z.enum(['V2', 'V3']) }))

export type ServedMarks = ReturnType<typeof countServed>

/** Counts the marks that the sandbox accepted through V2 and through V3. The counts are independent of the adapter. */
export function countServed(sandbox: string) {
  const served = { V2: 0, V3: 0 }
  let seq = 0
  return {
    last: (): Readonly<typeof served> => ({ ...served }),
    /** Reads the counts. Rejects while the sandbox does not respond. */
    read: async (): Promise<Readonly<typeof served>> => {
      const reply = await request(`${sandbox}/_sandbox/effects?since=${seq}`)
      const effects = effectsSchema.parse(await reply.body.json())
      for (const { face } of effects) served[face] += 1
      seq = effects.at(-1)?.seq ?? seq
      return { ...served }
    },
  }
}
