import type { Command } from 'commander'

/** The subcommands in the order of the help; only the one that is named is loaded. */
const subcommands = [
  {
    name: 'run',
    term: 'run [options]',
    description: 'read both services for a range of days and compare what they answer',
    load: async () => (await import('./compare-run.ts')).addCompareRun,
  },
  {
    name: 'report',
    term: 'report [options] [run]',
    description: 'write what a run found as a page, as JSON, CSV or JUnit XML',
    load: async () => (await import('./compare-report.ts')).addCompareReport,
  },
  {
    name: 'learn',
    term: 'learn [options] <partner>',
    description: "propose settings of a partner from V2's replies",
    load: async () => (await import('./compare-learn.ts')).addCompareLearn,
  },
] as const

/** Adds `compare run`, `report` and `learn`. */
export function addCompare(compare: Command, exitWith: (status: number) => void): void {
  for (const { name, description } of subcommands) compare.command(name).description(description)
  compare
    .configureHelp({
      subcommandTerm: (command) =>
        subcommands.find(({ name }) => name === command.name())?.term ?? command.name(),
    })
    .hook('preSubcommand', async (_compare, command) => {
      const found = subcommands.find(({ name }) => name === command.name())
      if (found !== undefined) (await found.load())(command, exitWith)
    })
}
