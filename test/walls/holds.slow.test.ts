import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { describe, expect, it, onTestFinished } from 'vitest'

import { isLongRun } from '../support/long-run.ts'
import { hostileReads } from './holds/hostile-reads.ts'
import { type HostileRequest, makeRequest, type NamedRequest } from './holds/hostile-request.ts'
import { hostileWrites, resent, warmUp } from './holds/hostile-writes.ts'
import { type Hold, openHoldMeter, type HoldMeter } from './holds/measure-holds.ts'

/**
 * The large writes of this test. The test checks only proportions, which do not depend on the speed of the machine. `npm run test:walls --
 * --holds` prints for how many milliseconds each request blocks the event loop.
 */
const LARGE_WRITES = [
  '20,000 empty records',
  '31 records of 1 MiB',
  '31 records of 500 K escapes',
  'lines with another delimiter each',
  '500 parts of folded headers',
]
const LARGE_PAGES = ['V3 answers 32 reads with 5,000 marks each']
/** The maximum number of measurements of a request. The garbage collector may lengthen a turn, so one measurement may mislead. */
const TRIES = 3

async function start(journal: string): Promise<HoldMeter> {
  const meter = await openHoldMeter(journal)
  onTestFinished(() => meter.close())
  await meter.measure(warmUp())
  return meter
}

/** The fraction of the full size of each request. A smaller request is enough because it still takes many turns. */
const SHARE = isLongRun ? 1 : 0.4

const named = (list: readonly NamedRequest[], names: readonly string[], share = 1): HostileRequest[] =>
  list.filter(([name]) => names.includes(name)).map((one) => makeRequest(one, share))

/** Expects that no turn takes a third of the work, and that other requests were answered between the turns. */
async function expectSliced(meter: HoldMeter, hostile: HostileRequest): Promise<void> {
  let hold = await meter.measure(hostile)
  expectStatus(hostile, hold)
  for (let count = 1; count < TRIES && !isSliced(hold); count += 1) hold = await meter.measure(hostile)
  const { name, longestMs, totalMs, neighbours } = hold
  expect.soft(isSliced(hold), `${name}: ${longestMs} of ${totalMs} ms, ${neighbours} others`).toBe(true)
}

const isSliced = ({ longestMs, totalMs, neighbours }: Hold): boolean =>
  longestMs < totalMs / 3 && neighbours >= 3

function expectStatus({ name, status }: HostileRequest, { replies }: Hold): void {
  expect
    .soft(
      replies.map((reply) => reply.status),
      name,
    )
    .toEqual(replies.map(() => status))
}

describe('an adapter that receives large or hostile requests', { timeout: 120_000 }, () => {
  it('still answers other clients while it handles large requests and large pages of V3', async () => {
    const meter = await start('none')
    for (const hostile of [
      ...named(hostileWrites, LARGE_WRITES, SHARE),
      ...named(hostileReads, LARGE_PAGES, SHARE),
    ])
      await expectSliced(meter, hostile)
  })

  it('still answers other clients while it answers a large batch from the journal', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'markbridge-holds-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const meter = await start(`sqlite:${join(folder, 'journal.db')}`)
    for (const hostile of named(hostileWrites, LARGE_WRITES.slice(0, 2), SHARE)) {
      const first = await meter.measure(hostile)
      expectStatus(hostile, first)
      await expectSliced(meter, resent(hostile))
    }
  })

  it('spends less than half the processor time of a large batch on a request head or a page of maximum size', async () => {
    const meter = await start('none')
    const [large] = named(hostileWrites, ['31 records of 1 MiB'])
    const most = large === undefined ? 0 : (await meter.measure(large)).totalMs / 2
    for (const one of hostileReads) {
      const hostile = makeRequest(one)
      if (LARGE_PAGES.includes(hostile.name)) continue
      const hold = await meter.measure(hostile)
      expectStatus(hostile, hold)
      expect.soft(hold.totalMs, hostile.name).toBeLessThan(most)
    }
  })
})
