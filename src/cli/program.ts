import { Command, CommanderError } from 'commander'

import { AdapterError, errorRules, formatLocation } from '../errors.ts'

type AddCommand = (program: Command, exitWith: (status: number) => void) => void

/** The commands in the order of the help. Loading the modules of all of them takes longer than most commands run. */
const commands: ReadonlyMap<string, () => Promise<AddCommand>> = new Map([
  ['demo', async () => (await import('./demo.ts')).addDemo],
  ['serve', async () => (await import('./serve.ts')).addServe],
  ['sandbox', async () => (await import('./sandbox.ts')).addSandbox],
  ['send', async () => (await import('./send.ts')).addSend],
  ['check', async () => (await import('./check.ts')).addCheck],
  ['config', async () => (await import('./config.ts')).addConfig],
  ['journal', async () => (await import('./journal.ts')).addJournal],
])

/** Runs the command line and returns the exit status: 0 done, 1 the run failed, 2 wrong usage or configuration. */
export async function run(argv: readonly string[]): Promise<number> {
  process.stdout.on('error', dropOutput)
  let status = 0
  const exitWith = (code: number): void => {
    status = code
  }
  const program = new Command('markbridge')
    .description('V2-to-V3 migration adapter and proxy for a learner information and attendance service.')
    .version('0.1.0')
    .showHelpAfterError('(add --help for the options and examples)')
    .exitOverride()
  const named = commands.get(argv[2] ?? '')
  for (const load of named === undefined ? commands.values() : [named]) (await load())(program, exitWith)
  // Subcommands made before this line keep their own way out.
  for (const command of program.commands) inheritExit(command)
  try {
    await program.parseAsync(argv)
    return status
  } catch (cause) {
    return toStatus(cause)
  }
}

/** A reader that has enough, such as head, ends no command: what it does goes on, and its exit status counts. */
function dropOutput(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

function inheritExit(command: Command): void {
  command.exitOverride()
  for (const child of command.commands) inheritExit(child)
}

function toStatus(cause: unknown): number {
  if (cause instanceof CommanderError) return cause.exitCode === 0 ? 0 : 2
  if (cause instanceof AdapterError) {
    const where = formatLocation(cause.at)
    console.error(
      `markbridge: ${cause.message}${where === '' || cause.message.includes(where) ? '' : ` (${where})`}`,
    )
    return errorRules[cause.code].class === 'configuration' ? 2 : 1
  }
  throw cause
}
