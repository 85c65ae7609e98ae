import { setTimeout as delay } from 'node:timers/promises'

import { request } from 'undici'

const POLL_MS = 500

/** Marks that each face of the service has accepted. */
interface Split {
  readonly V2: number
  readonly V3: number
}

/**
 * Prints a line whenever a face of the sandbox has accepted marks: the service itself says who served, not the adapter. Ends with
 * `signal`.
 */
export async function watchSplit(
  sandbox: string,
  print: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let seq = 0
  let split: Split = { V2: 0, V3: 0 }
  while (!signal.aborted) {
    const effects = await readEffects(`${sandbox}/_sandbox/effects?since=${seq}`)
    if (effects.length > 0) {
      split = { V2: split.V2 + count(effects, 'V2'), V3: split.V3 + count(effects, 'V3') }
      print(`served: V2 ${split.V2} marks · V3 ${split.V3} marks`)
    }
    seq = effects.at(-1)?.seq ?? seq
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined)
  }
}

interface Effect {
  readonly seq: number
  readonly face: keyof Split
}

/** None while the sandbox does not answer. */
async function readEffects(url: string): Promise<readonly Effect[]> {
  const reply = await request(url).catch(() => undefined)
  return reply === undefined ? [] : ((await reply.body.json()) as readonly Effect[])
}

const count = (effects: readonly Effect[], face: keyof Split): number =>
  effects.filter((effect) => effect.face === face).length
