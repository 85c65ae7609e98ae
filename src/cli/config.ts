import type { Command } from 'commander'

import { createConfigJsonSchema, loadConfig, printConfig, warningsOf } from '../config/index.ts'
import { AdapterError } from '../errors.ts'

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
    .description('read the file and its secrets, and name every fault at once')
    .option('--json', 'print one JSON document')
    .action(async (file: string, options: { json?: boolean }) => {
      const loaded = await loadConfig(file).catch((cause: unknown) => {
        if (options.json !== true || !(cause instanceof AdapterError)) throw cause
        const { message, details } = cause
        const faults = details.length > 0 ? details : [{ code: 'file', message }]
        console.log(JSON.stringify({ valid: false, faults }))
        exitWith(2)
      })
      if (loaded === undefined) return
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
  config
    .command('schema')
    .description('print the JSON Schema of the configuration file, for editors')
    .action(() => {
      console.log(JSON.stringify(createConfigJsonSchema(), null, 2))
    })
}
