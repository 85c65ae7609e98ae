import type { Command } from 'commander'

import type { ConfigOptions } from '../run-config.ts'

const examples = `
Examples:
  markbridge config check markbridge.yaml
  markbridge config print markbridge.yaml
  markbridge config print markbridge.yaml --json
  markbridge config schema > markbridge.schema.json

Exit status: 0 when the file is valid, 2 when it is not.`

/** Adds `config check`, `config print` and `config schema`. */
export function addConfig(program: Command, exitWith: (status: number) => void): void {
  const config = program
    .command('config')
    .description('check a configuration file, print it with all defaults, or print its JSON Schema')
    .addHelpText('after', examples)
  config
    .command('check <file>')
    .description('validate the file and its secrets, and list every fault')
    .option('--json', 'print one JSON document')
    .action(async (file: string, options: ConfigOptions) => {
      const { checkConfigFile } = await import('../run-config.ts')
      exitWith(await checkConfigFile(file, options))
    })
  config
    .command('print <file>')
    .description('print the whole configuration with its defaults; secrets are redacted')
    .option('--json', 'print JSON instead of YAML')
    .action(async (file: string, options: ConfigOptions) => {
      const { printConfigFile } = await import('../run-config.ts')
      await printConfigFile(file, options)
    })
  config
    .command('schema')
    .description('print the JSON Schema of the configuration file, for editors')
    .action(async () => {
      const { printConfigSchema } = await import('../run-config.ts')
      printConfigSchema()
    })
}
