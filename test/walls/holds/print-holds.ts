import { setFlagsFromString } from 'node:v8'

import { hostileReads } from './hostile-reads.ts'
import { type HostileRequest, makeRequest } from './hostile-request.ts'
import { hostileWrites, resent, warmUp } from './hostile-writes.ts'
import { openHoldMeter, type HoldMeter } from './measure-holds.ts'

/** The longest time in milliseconds that a request may block others on a quiet machine. */
const LIMIT_MS = 50

/**
 * Prints how long each hostile request blocks the event loop of an adapter with this journal: processor time of the longest turn and of all
 * turns, the number of another client's requests that were answered meanwhile, and the elapsed time. `!` marks more than 50 ms. Resolves
 * with false if a reply has an unexpected status.
 */
export async function printHolds(journal: string, only: RegExp): Promise<boolean> {
  setFlagsFromString('--no-allocation-site-pretenuring')
  const meter = await openHoldMeter(journal)
  console.log(' longest ms   all ms   others  passed ms')
  let isSound = await printHold(meter, warmUp())
  for (const named of [...hostileWrites, ...hostileReads]) {
    if (!only.test(named[0])) continue
    const one = makeRequest(named)
    isSound = (await printHold(meter, one)) && isSound
    if (journal !== 'none' && hostileWrites.includes(named))
      isSound = (await printHold(meter, resent(one))) && isSound
  }
  await meter.close()
  return isSound
}

async function printHold(meter: HoldMeter, wanted: HostileRequest): Promise<boolean> {
  const { longestMs, totalMs, neighbours, wallMs, replies } = await meter.measure(wanted)
  const isSound = replies.every(({ status }) => status === wanted.status)
  const columns = [
    `${longestMs > LIMIT_MS ? '!' : ''}${longestMs.toFixed(1)}`.padStart(11),
    totalMs.toFixed(0).padStart(8),
    String(neighbours).padStart(8),
    wallMs.toFixed(0).padStart(10),
  ]
  const statuses = [...new Set(replies.map(({ status }) => status))].join()
  console.log(
    `${columns.join(' ')}  ${wanted.name}: ${statuses}${isSound ? '' : ` INSTEAD OF ${wanted.status}`}`,
  )
  return isSound
}
