import type { DismissResult } from '../rollout/store/rollout-store.ts'
import { expectMay, loadTarget, openTargetStore, type RolloutTarget } from './rollout/open-target.ts'

/** The flags of `rollout dismiss`. */
export interface DismissOptions extends RolloutTarget {
  readonly reason: string
}

/** Takes the operator's word that a lost instance is off; returns the exit status. */
export async function dismissInstance(instance: number, options: DismissOptions): Promise<number> {
  const config = await loadTarget(options)
  const { name: by } = expectMay(config, 'set')
  const store = await openTargetStore(config)
  try {
    const result = await store.dismiss(instance, by, options.reason)
    const isDone = result.kind === 'dismissed'
    const message = formatDismissed(instance, result)
    if (options.json === true) console.log(JSON.stringify({ result: result.kind, instance, message }))
    else if (isDone) console.log(message)
    else console.error(`markbridge: ${message}`)
    return isDone ? 0 : 1
  } finally {
    await store.close()
  }
}

function formatDismissed(instance: number, result: DismissResult): string {
  switch (result.kind) {
    case 'dismissed':
      return (
        `Instance ${instance} (${result.host}, process ${result.pid}) is dismissed. ` +
        'Steps to V3 are possible once rollout.resendWindowMs have passed from now.'
      )
    case 'live':
      return `Instance ${instance} holds its lease and acknowledges steps; nothing was done.`
    case 'unknown':
      return `No instance ${instance} is lost; nothing was done. markbridge rollout show names those that are.`
  }
}
