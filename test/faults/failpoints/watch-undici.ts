import { subscribe } from 'node:diagnostics_channel'

import type { FailpointKind } from './failpoint.ts'

/** Reports the requests that leave through undici, and their answers. */
export function watchUndici(hit: (kind: FailpointKind) => void): void {
  const channels: [name: string, kind: FailpointKind][] = [
    ['undici:request:create', 'beforeSend'],
    ['undici:request:bodySent', 'afterSend'],
    ['undici:request:headers', 'answerHead'],
    ['undici:request:trailers', 'answerEnd'],
  ]
  for (const [name, kind] of channels) subscribe(name, () => hit(kind))
}
