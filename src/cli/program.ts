import { Command, CommanderError } from 'commander'

import { AdapterError, errorRules, formatLocation } from '../errors.ts'
import { addCheck } from './commands/check.ts'
import { addCompare } from './commands/compare.ts'
import { addConfig } from './commands/config.ts'
import { addDemo } from './commands/demo.ts'
import { addJournal } from './commands/journal.ts'
import { addRecord } from './commands/record.ts'
import { addRollout } from './commands/rollout.ts'
import { addSandbox } from './commands/sandbox.ts'
import { addSend } from './commands/send.ts'
import { addServe } from './commands/serve.ts'
import { formatGivenLines } from './text-table.ts'
import { version } from './version.ts'

/** The commands in the order of the help. Their modules hold options and texts only; an action loads its work when it runs. */
const commands = [
  addDemo,
  addServe,
  addSandbox,
  addSend,
  addCheck,
  addRecord,
  addConfig,
  addJournal,
  addRollout,
  addCompare,
]

/** Runs the command line and returns the exit status: 0 done, 1 the run failed, 2 wrong usage or configuration. */
export async function run(argv: readonly string[]): Promise<number> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', dropOutput)
  let status = 0
  const exitWith = (code: number): void => {
    status = code
  }
  const program = new Command('markbridge')
    .description('V2-to-V3 migration adapter and proxy for a learner information and attendance service.')
    .version(version)
    .showHelpAfterError('(add --help for the options and examples)')
    .exitOverride()
  for (const add of commands) add(program, exitWith)
  // exitOverride does not reach subcommands that exist already.
  for (const command of program.commands) inheritExit(command)
  try {
    await program.parseAsync(argv)
    return status
  } catch (cause) {
    return toStatus(cause)
  }
}

/** Ignores a closed pipe, as of `| head` or of a collector of logs that ended: the command goes on and keeps its exit status. */
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
    const shown = where === '' || cause.message.includes(where) ? '' : ` (${where})`
    // It may quote what a file or a service has written.
    console.error(formatGivenLines(`markbridge: ${cause.message}${shown}`))
    return errorRules[cause.code].class === 'configuration' ? 2 : 1
  }
  throw cause
}
