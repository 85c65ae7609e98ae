/**
 * A process that opens the journal at a URL, reads steps from standard input and prints results. Steps and results are lines of JSON.
 * Usage: node instance-process.ts <url>
 */
import { createInterface } from 'node:readline'

import { openJournal } from '../../src/journal/index.ts'
import { batchOf, confirmed } from './batches.ts'

/**
 * A step for the process. `hammer` begins and settles batches until the process is killed, and prints the number of each batch that is
 * durable.
 */
export type Step =
  | { readonly do: 'begin'; readonly keys: readonly string[] }
  | { readonly do: 'settle'; readonly batch: number; readonly positions: readonly number[] }
  | { readonly do: 'hammer'; readonly name: string }

const journal = await openJournal({ url: process.argv[2] ?? '' })
const say = (value: unknown): boolean => process.stdout.write(`${JSON.stringify(value)}\n`)

async function run(step: Step): Promise<void> {
  switch (step.do) {
    case 'begin':
      say((await journal.begin(batchOf(step.keys))).batch)
      return
    case 'settle':
      await journal.settle(
        step.batch,
        step.positions.map((position) => confirmed(position)),
      )
      say('settled')
      return
    case 'hammer':
      for (let n = 0; ; n += 1) {
        const { batch } = await journal.begin(batchOf([`${step.name} ${n}`, 'shared']))
        say({ begun: batch })
        await journal.settle(batch, [confirmed(0), confirmed(1)])
        say({ settled: batch })
      }
  }
}

say('ready')
for await (const line of createInterface({ input: process.stdin })) await run(JSON.parse(line) as Step)
