import { Command, CommanderError } from 'commander'

import type { AppOverrides } from '../app.ts'
import { AdapterError, errorRules, formatLocation } from '../errors.ts'
import { hideUsers } from '../http/address.ts'
import { formatGivenLines, formatHints } from './text.ts'
import { version } from './version.ts'

type ExitWith = (status: number) => void

type AddCommand = (command: Command, exitWith: ExitWith, overrides: AppOverrides) => void

interface CommandEntry {
  readonly description: string
  /** Loads the function that adds the options, the arguments and the action. A command with subcommands has no such function. */
  readonly load?: () => Promise<AddCommand>
  readonly subcommands?: Commands
}

type Commands = Readonly<Record<string, CommandEntry>>

/** The commands. The code of a command is loaded only if its name is given, so that general help and usage errors appear at once. */
const commands: Commands = {
  demo: {
    description:
      'run the sandbox with the adapter in front, and print a curl line that posts a class register',
    load: async () => (await import('./commands/demo.ts')).addDemo,
  },
  serve: {
    description: 'run the adapter',
    load: async () => (await import('./commands/serve.ts')).addServe,
  },
  init: {
    description: 'write a commented configuration for one partner, after four questions',
    load: async () => (await import('./commands/init.ts')).addInit,
  },
  doctor: {
    description: 'check the configuration and everything that it names, and say how to fix what fails',
    load: async () => (await import('./commands/doctor.ts')).addDoctor,
  },
  health: {
    description: 'ask a running adapter whether it is well, for a health check without curl',
    load: async () => (await import('./commands/health.ts')).addHealth,
  },
  sandbox: {
    description: 'run the stand-in service with a seeded class or school; no subscription is needed',
    load: async () => (await import('./commands/sandbox.ts')).addSandbox,
  },
  send: {
    description: 'post a batch as a V2 client and print the outcome of each record as it arrives',
    load: async () => (await import('./commands/send.ts')).addSend,
  },
  check: {
    description: 'decode a batch, or a folder of batches, without a service, and list findings with remedies',
    load: async () => (await import('./commands/check.ts')).addCheck,
  },
  record: {
    description: 'store the exchanges between a V2 client and V2 in encrypted files',
    load: async () => (await import('./commands/record.ts')).addRecord,
  },
  config: {
    description: 'check a configuration file, print it with all defaults, or print its JSON Schema',
    load: async () => (await import('./commands/config.ts')).addConfig,
  },
  journal: {
    description: 'inspect the journal of writes, retry waiting records, and maintain the journal',
    load: async () => (await import('./commands/journal.ts')).addJournal,
  },
  rollout: {
    description: 'show the stages of partners between V2 and V3, and change them',
    load: async () => (await import('./commands/rollout.ts')).addRollout,
  },
  compare: {
    description: 'show, record by record, whether V3 through the adapter answers as V2 does',
    subcommands: {
      run: {
        description: 'read a range of days from both services, and compare the answers',
        load: async () => (await import('./commands/compare-run.ts')).addCompareRun,
      },
      report: {
        description: 'write the findings of a run as an HTML page, JSON, CSV or JUnit XML',
        load: async () => (await import('./commands/compare-report.ts')).addCompareReport,
      },
      learn: {
        description: "propose settings of a partner from V2's replies",
        load: async () => (await import('./commands/compare-learn.ts')).addCompareLearn,
      },
    },
  },
}

const statuses = `
Commands that need a configuration read the file of --config, otherwise of
MARKBRIDGE_CONFIG, otherwise ./markbridge.yaml, which markbridge init writes.
Exit status: 0 done, 1 failed or refused, 2 wrong usage or configuration,
3 inconclusive (compare), 4 waits for an approval (rollout).`

/** Runs the command line and returns the exit status (docs/commands.md). `overrides` apply to the adapter of `serve`. */
export async function run(argv: readonly string[], overrides: AppOverrides = {}): Promise<number> {
  let status = 0
  const output = { isLost: false }
  process.stderr.on('error', () => undefined)
  process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    // A closed pipe is no failure. For example, `head` closes its pipe early.
    if (code === 'EPIPE' || output.isLost) return
    output.isLost = true
    process.exitCode = 1
    console.error(`markbridge: standard output cannot be written (${code}), so output is missing.`)
  })
  const exitWith: ExitWith = (code) => {
    status = code
  }
  const program = await createProgram(argv, exitWith, overrides)
  let given: object = {}
  program.hook('preAction', (_program, action) => {
    given = action.opts()
  })
  try {
    await program.parseAsync(argv)
    return output.isLost && status === 0 ? 1 : status
  } catch (cause) {
    return toStatus(cause, given)
  }
}

/** Creates the program. Only the commands that `argv` names get their options and actions. */
export async function createProgram(
  argv: readonly string[],
  exitWith: ExitWith,
  overrides: AppOverrides = {},
): Promise<Command> {
  const program = new Command('markbridge')
    .description('V2-to-V3 migration adapter and proxy for a learner information and attendance service.')
    .version(version)
    .showHelpAfterError('(add --help for the options and examples)')
    // Usage errors quote the arguments, and an address among the arguments may contain a password.
    .configureOutput({ outputError: (text, write) => write(hideUsers(text)) })
    .addHelpText('after', statuses)
    .exitOverride()
  await addCommands(program, commands, argv, exitWith, overrides)
  return program
}

async function addCommands(
  parent: Command,
  entries: Commands,
  argv: readonly string[],
  exitWith: ExitWith,
  overrides: AppOverrides,
): Promise<void> {
  for (const [name, { description, load, subcommands }] of Object.entries(entries)) {
    const command = parent.command(name).description(description)
    if (!argv.includes(name)) continue
    const add = await load?.()
    add?.(command, exitWith, overrides)
    if (subcommands !== undefined) await addCommands(command, subcommands, argv, exitWith, overrides)
  }
}

function toStatus(cause: unknown, given: object): number {
  if (cause instanceof CommanderError) return cause.exitCode === 0 ? 0 : 2
  if (cause instanceof AdapterError) {
    const where = formatLocation(cause.at)
    const shown = where === '' || cause.message.includes(where) ? '' : ` (${where})`
    // Replaces unsafe characters, because the message may quote text from a file or a service.
    console.error(formatHints(formatGivenLines(`markbridge: ${cause.message}${shown}`), given))
    return errorRules[cause.code].class === 'configuration' ? 2 : 1
  }
  throw cause
}
