import { numberOption } from '../support/number-option.ts'
import { parseArgs } from 'node:util'

import { growthMiB, runPieces } from './fuzz/check-run.ts'
import { startTarget } from './fuzz/start-target.ts'
import { printHolds } from './holds/print-holds.ts'
import { printKeys } from './measure-keys.ts'
import { printShapes } from './shapes/print-shapes.ts'
import { runUpstreams } from './upstreams/run-upstreams.ts'

/**
 * `npm run test:walls`: sends a hundred thousand requests, most of them broken, to the listener of the adapter, for a nightly run.
 * `--requests n` sets the number, and `--seed n` draws the same requests again. The exit status is 1 after a 500, a missing reply, an
 * unexpected error of the adapter, or growing memory.
 *
 * `--holds` prints instead how long requests at the limits block the event loop. `--journal url` chooses the journal, and `--only text` the
 * requests whose names match. The exit status is 1 after a reply with an unexpected status.
 *
 * `--shapes` runs every reader on every shape of text that `--only` names, at four sizes. The exit status is 1 if a reader blocks the event
 * loop for more than 50 ms, or costs more than three times as much for twice as much text.
 *
 * `--upstreams` makes a hundred thousand exchanges with services that answer in odd ways, drawn from the seed: V2, V3 and the token
 * endpoint. The exit status is 1 after a crash, a 500, a reply that claims more than is known, a wrong balance, or a turn of the event loop
 * of more than 50 ms. `--exchange n` makes only that exchange.
 *
 * `--keys` prints the cost for the journal of large batches with one learner and event, and with many.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 9_999)) },
    requests: { type: 'string', default: '100000' },
    holds: { type: 'boolean', default: false },
    journal: { type: 'string', default: 'none' },
    shapes: { type: 'boolean', default: false },
    upstreams: { type: 'boolean', default: false },
    exchange: { type: 'string' },
    keys: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
})
/** The allowed growth of memory, for caches that fill and for memory that the garbage collector has not freed yet. */
const GROWTH_MIB = 64

async function runFuzz(): Promise<boolean> {
  const seed = numberOption('seed', values.seed)
  const target = await startTarget()
  const report = await runPieces(target, {
    seed,
    requests: numberOption('requests', values.requests),
    piece: 10_000,
    concurrency: 64,
    onPiece: (line) => console.log(line),
  })
  const status = await target.close()
  console.log(JSON.stringify({ seed, ...report, findings: report.findings.slice(0, 20) }, null, 2))
  const grows = report.memoryMiB.length >= 6 && growthMiB(report.memoryMiB) > GROWTH_MIB
  const isSound = report.findings.length === 0 && report.internalErrors.length === 0 && status === 0 && !grows
  console.log(
    `${isSound ? 'sound' : 'NOT SOUND'}: ${report.findings.length} findings, memory ${growthMiB(report.memoryMiB)} MiB, exit ${status ?? '-'}`,
  )
  return isSound
}

/** The longest time in milliseconds for which one turn of the event loop may delay all clients. */
const HOLD_MS = 50

async function runOddServices(): Promise<boolean> {
  const seed = numberOption('seed', values.seed)
  const only = values.exchange === undefined ? undefined : numberOption('exchange', values.exchange)
  const exchanges = numberOption('requests', values.requests)
  const report = await runUpstreams({
    seed,
    exchanges,
    only,
    concurrency: 32,
    onPiece: (line) => console.log(line),
  })
  const { findings, internalErrors, unbalanced, status, longestTurnMs } = report
  console.log(JSON.stringify({ seed, ...report, findings: findings.slice(0, 20) }, null, 2))
  const faults = findings.length + internalErrors.length + unbalanced.length
  const isSound = faults === 0 && status === 0 && longestTurnMs <= HOLD_MS
  console.log(
    `${isSound ? 'sound' : 'NOT SOUND'}: ${faults} faults, longest turn ${longestTurnMs} ms, exit ${status ?? '-'}`,
  )
  return isSound
}

const run = values.keys
  ? printKeys
  : values.shapes
    ? () => printShapes(new RegExp(values.only))
    : values.holds
      ? () => printHolds(values.journal, new RegExp(values.only))
      : values.upstreams
        ? runOddServices
        : runFuzz
const isSound = await run()
process.exitCode = isSound ? 0 : 1
