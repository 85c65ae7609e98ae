import type { RolloutSnapshot, RolloutStore } from '../../rollout/store/rollout-store.ts'

/** A store that reports which instances a pending change of a partner waits for, each time that this changes. */
export function reportWaiting(
  store: RolloutStore,
  partner: string,
  report: (text: string) => void,
): RolloutStore {
  let last = ''
  return {
    ...store,
    snapshot: async () => {
      const snapshot = await store.snapshot()
      const text = describeWaiting(snapshot, partner)
      if (text !== undefined && text !== last) report(text)
      last = text ?? last
      return snapshot
    },
  }
}

/** `waiting for 1 of 2 instances to drain: instance 4 (3 writes)`; undefined: for none. */
export function describeWaiting(
  { partners, liveInstances, acknowledgements }: RolloutSnapshot,
  partner: string,
): string | undefined {
  const pending = partners.get(partner)?.pending
  if (pending === undefined) return undefined
  const waiting = liveInstances.flatMap((instance) => {
    const ack = acknowledgements.find((one) => one.instance === instance && one.partner === partner)
    if (ack?.pendingRevision !== pending.revision) return [`instance ${instance} (no answer yet)`]
    const writes = ack.writesV2 + ack.writesV3
    return writes === 0 ? [] : [`instance ${instance} (${writes} write${writes === 1 ? '' : 's'})`]
  })
  if (waiting.length === 0) return undefined
  const all = `${liveInstances.length} instance${liveInstances.length === 1 ? '' : 's'}`
  return `waiting for ${waiting.length} of ${all} to drain: ${waiting.join(', ')}`
}
