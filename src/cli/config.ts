import type { Command } from 'commander'

import { loadConfig, printConfig, warningsOf } from '../config/index.ts'

const examples = `
Examples:
  markbridge config check markbridge.yaml
  markbridge config print markbridge.yaml
  markbridge config print markbridge.yaml --json`

/** Adds `config check` and `config print`. */
export function addConfig(program: Command): void {
  const config = program
    .command('config')
    .description('check a configuration file, or print it with all defaults')
    .addHelpText('after', examples)
  config
    .command('check <file>')
    .description('read the file and its secrets, and name every fault at once')
    .option('--json', 'print one JSON document')
    .action(async (file: string, options: { json?: boolean }) => {
      const loaded = await loadConfig(file)
      const partners = loaded.partners.map(({ id }) => id)
      const warnings = warningsOf(loaded, 1)
      if (options.json === true) {
        console.log(JSON.stringify({ valid: true, partners, warnings }))
        return
      }
      console.log(`${file} is valid: ${partners.length} partner(s): ${partners.join(', ')}`)
      for (const warning of warnings) console.log(`warning: ${warning}`)
    })
  config
    .command('print <file>')
    .description('print the whole configuration with its defaults; secrets are not shown')
    .option('--json', 'print JSON instead of YAML')
    .action(async (file: string, options: { json?: boolean }) => {
      const loaded = await loadConfig(file)
      console.log(options.json === true ? JSON.stringify(loaded, null, 2) : printConfig(loaded).trimEnd())
    })
}
