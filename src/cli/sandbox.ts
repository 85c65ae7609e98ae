import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'

import { type Command, Option } from 'commander'

import { createSandbox, type SandboxOptions } from '../sandbox/index.ts'
import { readCount, readPort } from './options.ts'
import { runUntilStopped } from './run-until-stopped.ts'

const examples = `
Examples:
  markbridge sandbox
  markbridge sandbox --port 4010 --seed 7
  markbridge sandbox --scale school
  markbridge sandbox --calls-per-second 5 --on-existing conflict

Key and bearer "sandbox" are always accepted. GET /_sandbox/samples names ids to try, GET /_sandbox/effects shows every
accepted write, POST /_sandbox/reset forgets them. A school (720 learners, 680,000 marks) is built once, into a file.`

interface SandboxFlags {
  readonly port: number
  readonly host: string
  readonly seed: number
  readonly scale: 'class' | 'school'
  readonly db?: string
  readonly now?: string
  readonly onExisting: 'replace' | 'duplicate' | 'conflict'
  readonly callsPerSecond?: number
  readonly control: boolean
}

/** Adds `sandbox`: runs the stand-in service until it is told to stop. */
export function addSandbox(program: Command): void {
  program
    .command('sandbox')
    .description(
      'run the stand-in service on a seeded class or school, to try everything without a subscription',
    )
    .option('--port <n>', 'port to listen on', readPort, 4010)
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--seed <n>', 'seed of the class: the same seed gives the same ids', readCount, 1)
    .addOption(
      new Option('--scale <scale>', 'how many learners').choices(['class', 'school']).default('class'),
    )
    .option('--db <file>', 'keep the store in a file (default: memory for a class, ./data for a school)')
    .option('--now <date-time>', 'a clock that stands still, ISO 8601')
    .addOption(
      new Option('--on-existing <what>', 'what a POST does where a mark is')
        .choices(['replace', 'duplicate', 'conflict'])
        .default('replace'),
    )
    .option(
      '--calls-per-second <n>',
      'answer 429 above this rate for each key (default: no limit)',
      readCount,
    )
    .option('--no-control', 'serve no /_sandbox routes')
    .addHelpText('after', examples)
    .action(async (flags: SandboxFlags) => {
      const db =
        flags.db ?? (flags.scale === 'school' ? `./data/sandbox-school-${flags.seed}.db` : ':memory:')
      if (db !== ':memory:') await mkdir(dirname(db), { recursive: true })
      const sandbox = createSandbox(toOptions(flags, db), { onProgress: showProgress })
      await runUntilStopped(async () => {
        const { url } = await sandbox.listen()
        console.log(`sandbox ready ${url}`)
        return () => sandbox.close()
      })
    })
}

function toOptions({ now, callsPerSecond, ...flags }: SandboxFlags, db: string): SandboxOptions {
  return {
    ...flags,
    db,
    ...(now === undefined ? {} : { now }),
    ...(callsPerSecond === undefined ? {} : { callsPerSecond }),
  }
}

/** A bar on a terminal while a school is built. */
function showProgress(share: number): void {
  if (!process.stderr.isTTY) return
  const filled = Math.round(share * 40)
  process.stderr.write(
    `\rbuilding ${'█'.repeat(filled)}${'░'.repeat(40 - filled)} ${Math.round(share * 100)} %`,
  )
  if (share >= 1) process.stderr.write('\r\u001b[K')
}
