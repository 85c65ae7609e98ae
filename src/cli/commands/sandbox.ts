import { type Command, Option } from 'commander'

import { loadValues } from '../../config/index.ts'
import { createSandbox, sandboxFileSchema, type SandboxOptions } from '../../sandbox/index.ts'
import { runUntilStopped } from '../signals.ts'
import { readCount, readPort } from '../options.ts'
import { type Progress, showProgress } from '../progress.ts'

const examples = `
Examples:
  markbridge sandbox
  markbridge sandbox --port 4010 --seed 7
  markbridge sandbox --scale school
  markbridge sandbox --v2-port 4020
  markbridge sandbox --on-existing conflict
  markbridge sandbox --options sandbox.yaml

The subscription key "sandbox" and the bearer token "sandbox" are always
accepted. GET /_sandbox/samples lists ids to try, GET /_sandbox/effects lists
every accepted write, POST /_sandbox/reset restores the seeded state. A school
(720 learners, over 680,000 marks) is built once and stored in a file.
docs/sandbox.md describes the file of options: the clock, callers and their
permissions, a limit of calls per second.`

export function addSandbox(command: Command): void {
  command
    .option('--options <file>', 'YAML file with options of createSandbox; the flags below override it')
    .option('--port <n>', 'port to listen on (default: 4010)', readPort)
    .option('--v2-port <n>', 'serve V2 on a separate port (default: the port of V3)', readPort)
    .option('--host <host>', 'address to listen on (default: 127.0.0.1)')
    .option('--seed <n>', 'seed of the data: the same seed gives the same ids (default: 1)', readCount)
    .addOption(
      new Option('--scale <scale>', 'number of learners (default: class)').choices(['class', 'school']),
    )
    .option('--db <file>', 'keep the store in a file (default: memory for a class, ./data for a school)')
    .addOption(
      new Option('--on-existing <what>', 'effect of a POST for an existing mark (default: replace)').choices([
        'replace',
        'duplicate',
        'conflict',
      ]),
    )
    .addHelpText('after', examples)
    .action(async ({ options, ...all }: SandboxFlags, command: Command) => {
      const flags = Object.entries(all).filter(([name]) => command.getOptionValueSource(name) === 'cli')
      await runSandbox(options, Object.fromEntries(flags))
    })
}

type SandboxFlags = SandboxOptions & { readonly options?: string }

async function runSandbox(path: string | undefined, flags: SandboxOptions): Promise<void> {
  // The file is validated without the flags, so that a flag does not hide an invalid value.
  const values = path === undefined ? {} : await loadValues(path, sandboxFileSchema)
  const sandbox = createSandbox(withDefaults({ ...values, ...flags }), showBuilding())
  await runUntilStopped(async (onClose) => {
    onClose(() => sandbox.close())
    const { url, v2Url } = await sandbox.listen()
    console.log(`sandbox ready ${url}`)
    if (v2Url !== url) console.log(`sandbox v2 ready ${v2Url}`)
  })
}

/** Adds the default port, and a file for the data of a school, because building the data takes seconds. */
function withDefaults(values: SandboxOptions): SandboxOptions {
  const { scale, seed = 1 } = values
  const file = scale === 'school' ? { db: `./data/sandbox-school-${seed}.db` } : {}
  return { port: 4010, ...file, ...values }
}

function showBuilding(): (share: number) => void {
  let progress: Progress | undefined
  return (share) => {
    progress ??= showProgress({ total: 100, unit: '% built', everyMs: 1_000 })
    progress.advance(Math.round(share * 100))
    if (share >= 1) progress.stop()
  }
}
