import { Command, CommanderError, Help } from 'commander'

import { AdapterError, errorRules, formatLocation } from '../errors.ts'
import { formatGivenLines } from './text.ts'
import { version } from './version.ts'

type AddCommand = (command: Command, exitWith: (status: number) => void) => void

interface CommandEntry {
  readonly name: string
  /** As the help lists it: a command that was not loaded knows neither its options nor its arguments. */
  readonly term: string
  readonly description: string
  /** Adds its options, arguments and action; one with subcommands has none of its own. */
  readonly load?: () => Promise<AddCommand>
  readonly subcommands?: readonly CommandEntry[]
}

/** The commands in the order of the help. Only one that is named is loaded: help of all and wrong usage are shown at once. */
const commands: readonly CommandEntry[] = [
  {
    name: 'demo',
    term: 'demo [options]',
    description:
      'run the sandbox with the adapter in front, and print a curl line that posts a class register',
    load: async () => (await import('./commands/demo.ts')).addDemo,
  },
  {
    name: 'serve',
    term: 'serve [options]',
    description: 'run the adapter',
    load: async () => (await import('./commands/serve.ts')).addServe,
  },
  {
    name: 'sandbox',
    term: 'sandbox [options]',
    description: 'run the stand-in service with a seeded class or school; no subscription is needed',
    load: async () => (await import('./commands/sandbox.ts')).addSandbox,
  },
  {
    name: 'send',
    term: 'send [options] <batch-file>',
    description: 'post a batch as a V2 client and print the outcome of each record as it arrives',
    load: async () => (await import('./commands/send.ts')).addSend,
  },
  {
    name: 'check',
    term: 'check [options] <file-or-folder>',
    description:
      'decode a batch offline: its records, their V3 bodies, and numbered findings with a remedy; - reads standard input',
    load: async () => (await import('./commands/check.ts')).addCheck,
  },
  {
    name: 'record',
    term: 'record [options]',
    description: 'keep exchanges between a V2 client and V2 as files, encrypted or as pseudonyms',
    load: async () => (await import('./commands/record.ts')).addRecord,
  },
  {
    name: 'config',
    term: 'config',
    description: 'check a configuration file, print it with all defaults, or print its JSON Schema',
    load: async () => (await import('./commands/config.ts')).addConfig,
  },
  {
    name: 'journal',
    term: 'journal',
    description: 'inspect the write journal, retry its waiting records, and maintain it',
    load: async () => (await import('./commands/journal.ts')).addJournal,
  },
  {
    name: 'rollout',
    term: 'rollout',
    description: 'show the stages of partners between V2 and V3, and change them',
    load: async () => (await import('./commands/rollout.ts')).addRollout,
  },
  {
    name: 'compare',
    term: 'compare',
    description: 'show, record by record, whether V3 through the adapter answers as V2 does',
    subcommands: [
      {
        name: 'run',
        term: 'run [options]',
        description: 'read both services for a range of days and compare what they answer',
        load: async () => (await import('./commands/compare-run.ts')).addCompareRun,
      },
      {
        name: 'report',
        term: 'report [options] [run]',
        description: 'write what a run found as a page, as JSON, CSV or JUnit XML',
        load: async () => (await import('./commands/compare-report.ts')).addCompareReport,
      },
      {
        name: 'learn',
        term: 'learn [options] <partner>',
        description: "propose settings of a partner from V2's replies",
        load: async () => (await import('./commands/compare-learn.ts')).addCompareLearn,
      },
    ],
  },
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
  await addCommands(program, commands, argv, exitWith)
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

/** Adds commands to the program, or to a command that has them, and loads those that are named. */
async function addCommands(
  parent: Command,
  entries: readonly CommandEntry[],
  argv: readonly string[],
  exitWith: (status: number) => void,
): Promise<void> {
  parent.configureHelp({
    subcommandTerm: (command) =>
      entries.find(({ name }) => command.parent === parent && name === command.name())?.term ??
      new Help().subcommandTerm(command),
  })
  for (const { name, description, load, subcommands = [] } of entries) {
    const command = parent.command(name).description(description)
    if (!argv.includes(name)) continue
    const add = await load?.()
    add?.(command, exitWith)
    if (subcommands.length > 0) await addCommands(command, subcommands, argv, exitWith)
  }
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
