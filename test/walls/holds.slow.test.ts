import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { describe, expect, it, onTestFinished } from 'vitest'

import { isLongRun } from '../support/long-run.ts'
import { hostileReads } from './holds/hostile-reads.ts'
import { type HostileRequest, makeRequest, type NamedRequest } from './holds/hostile-request.ts'
import { hostileWrites, resent, warmUp } from './holds/hostile-writes.ts'
import { type Hold, openStage, type Stage } from './holds/measure-holds.ts'

/**
 * `npm run test:walls -- --holds` prints the milliseconds. This test checks only proportions, which do not depend on the speed of the
 * machine.
 */
const LARGE_WRITES = [
  '20,000 empty records',
  '31 records of 1 MiB',
  '31 records of 500 K escapes',
  'lines with another delimiter each',
  '500 parts of folded headers',
]
const LARGE_PAGES = ['V3 answers 32 reads with 5,000 marks each']
/** The garbage collector may lengthen one turn. */
const TRIES = 3

async function start(journal: string): Promise<Stage> {
  const stage = await openStage(journal)
  onTestFinished(() => stage.close())
  await stage.measure(warmUp())
  return stage
}

/** A part of their size is enough, because they still take many turns. */
const SHARE = isLongRun ? 1 : 0.4

const named = (list: readonly NamedRequest[], names: readonly string[], share = 1): HostileRequest[] =>
  list.filter(([name]) => names.includes(name)).map((one) => makeRequest(one, share))

/** One turn is a small part of the work, and other requests were answered between the turns. */
async function expectSliced(stage: Stage, hostile: HostileRequest): Promise<void> {
  let hold = await stage.measure(hostile)
  expectStatus(hostile, hold)
  for (let count = 1; count < TRIES && !isSliced(hold); count += 1) hold = await stage.measure(hostile)
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

describe(
  'what one client sends does not keep other clients from being answered',
  { timeout: 120_000 },
  () => {
    it('handles large requests, and large pages of V3, in many turns', async () => {
      const stage = await start('none')
      for (const hostile of [
        ...named(hostileWrites, LARGE_WRITES, SHARE),
        ...named(hostileReads, LARGE_PAGES, SHARE),
      ])
        await expectSliced(stage, hostile)
    })

    it('journals large batches, and answers them from the journal, in many turns', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'markbridge-holds-'))
      onTestFinished(() => rm(folder, { recursive: true }))
      const stage = await start(`sqlite:${join(folder, 'journal.db')}`)
      for (const hostile of named(hostileWrites, LARGE_WRITES.slice(0, 2), SHARE)) {
        const first = await stage.measure(hostile)
        expectStatus(hostile, first)
        await expectSliced(stage, resent(hostile))
      }
    })

    it('handles heads and pages at their limits for a fraction of the cost of a large batch', async () => {
      const stage = await start('none')
      const [large] = named(hostileWrites, ['31 records of 1 MiB'])
      const most = large === undefined ? 0 : (await stage.measure(large)).totalMs / 2
      for (const one of hostileReads) {
        const hostile = makeRequest(one)
        if (LARGE_PAGES.includes(hostile.name)) continue
        const hold = await stage.measure(hostile)
        expectStatus(hostile, hold)
        expect.soft(hold.totalMs, hostile.name).toBeLessThan(most)
      }
    })
  },
)
