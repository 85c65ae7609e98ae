import { type Command, Option } from 'commander'

import { loadValues } from '../config/index.ts'
import { createSandbox, sandboxFileSchema, type SandboxOptions } from '../sandbox/index.ts'
import { readCount, readPort } from './options.ts'
import { runUntilStopped } from './run-until-stopped.ts'

const examples = `
Examples:
  markbridge sandbox
  markbridge sandbox --port 4010 --seed 7
  markbridge sandbox --scale school
  markbridge sandbox --calls-per-second 5 --on-existing conflict
  markbridge sandbox --config sandbox.yaml

Key and bearer "sandbox" are always accepted. GET /_sandbox/samples names ids to try, GET /_sandbox/effects shows every
accepted write, POST /_sandbox/reset forgets them. A school (720 learners, over 680,000 marks) is built
once, into a file. docs/sandbox.md has the keys of the configuration file: callers, permissions, what is unavailable.`

/** Adds `sandbox`: runs the stand-in service until it is told to stop. */
export function addSandbox(program: Command): void {
  program
    .command('sandbox')
    .description(
      'run the stand-in service on a seeded class or school, to try everything without a subscription',
    )
    .option('--config <file>', 'YAML file with any option of createSandbox; the options here win over it')
    .option('--port <n>', 'port to listen on (default: 4010)', readPort)
    .option('--host <host>', 'address to listen on (default: 127.0.0.1)')
    .option('--seed <n>', 'seed of the class: the same seed gives the same ids (default: 1)', readCount)
    .addOption(
      new Option('--scale <scale>', 'how many learners (default: class)').choices(['class', 'school']),
    )
    .option('--db <file>', 'keep the store in a file (default: memory for a class, ./data for a school)')
    .option('--now <date-time>', 'a clock that stands still, ISO 8601')
    .addOption(
      new Option('--on-existing <what>', 'what a POST does where a mark is (default: replace)').choices([
        'replace',
        'duplicate',
        'conflict',
      ]),
    )
    .option(
      '--calls-per-second <n>',
      'answer 429 above this rate for each key (default: no limit)',
      readCount,
    )
    .option('--no-control', 'serve no /_sandbox routes')
    .addHelpText('after', examples)
    .action(async ({ config: path, ...all }: SandboxFlags, command: Command) => {
      const flags = Object.entries(all).filter(([name]) => command.getOptionValueSource(name) === 'cli')
      const complete = (values: Values): Values => withDefaults({ ...values, ...Object.fromEntries(flags) })
      const options =
        path === undefined
          ? (complete({}) as SandboxOptions)
          : await loadValues(path, sandboxFileSchema, complete)
      const sandbox = createSandbox(options, { onProgress: showProgress })
      await runUntilStopped(async (onClose) => {
        onClose(() => sandbox.close())
        const { url } = await sandbox.listen()
        console.log(`sandbox ready ${url}`)
      })
    })
}

type SandboxFlags = SandboxOptions & { readonly config?: string }
type Values = Readonly<Record<string, unknown>>

/** A command has a port of its own, and a school is kept in a file: building one takes seconds. */
function withDefaults(values: Values): Values {
  const { scale, seed = 1 } = values
  const file = scale === 'school' ? { db: `./data/sandbox-school-${String(seed)}.db` } : {}
  return { port: 4010, ...file, ...values }
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
