import type { Command } from 'commander'

import { systemClock } from '../../clock.ts'
import { createConfigJsonSchema, loadConfig, warningsOf } from '../../config/index.ts'
import { printConfig } from '../../config/yaml.ts'
import { AdapterError } from '../../errors.ts'
import { configOption, expectConfig } from '../options.ts'
import { type Answer, answerWith } from '../text.ts'

const examples = `
Examples:
  markbridge config check
  markbridge config print --config acme.yaml --json
  markbridge config schema > markbridge.schema.json

The file is an argument or the value of --config, otherwise the value of
MARKBRIDGE_CONFIG, otherwise ./markbridge.yaml.
Exit status: 0 when the file is valid, 2 when it is not.`

export function addConfig(config: Command, exitWith: (status: number) => void): void {
  config.addHelpText('after', examples)
  config
    .command('check [file]')
    .description('validate the file and its secrets, and list every fault')
    .addOption(configOption('the configuration file, if no argument names a file'))
    .option('--json', 'print one JSON document')
    .action(answerWith(exitWith, checkConfigFile))
  config
    .command('print [file]')
    .description('print the whole configuration with its defaults; secrets are redacted')
    .addOption(configOption('the configuration file, if no argument names a file'))
    .option('--json', 'print JSON instead of YAML')
    .action(printConfigFile)
  config
    .command('schema')
    .description('print the JSON Schema of the configuration file, for editors')
    .action(() => console.log(JSON.stringify(createConfigJsonSchema(), null, 2)))
}

interface ConfigOptions {
  readonly config?: string
  readonly json?: boolean
}

/** Checks a configuration file. Faults give exit status 2. With `--json` the document lists them; without it, `loadConfig` throws them. */
async function checkConfigFile(given: string | undefined, { config, json }: ConfigOptions): Promise<Answer> {
  const file = given ?? expectConfig(config)
  try {
    const loaded = await loadConfig(file)
    const partners = loaded.partners.map(({ id }) => id)
    const warnings = warningsOf(loaded, 1, new Date(systemClock.wallMs()).toISOString().slice(0, 10))
    const head = `${file} is valid: ${partners.length} partner(s): ${partners.join(', ')}`
    return {
      document: { valid: true, partners, warnings },
      text: () => [head, ...warnings.map((warning) => `warning: ${warning}`)].join('\n'),
    }
  } catch (cause) {
    if (json !== true || !(cause instanceof AdapterError)) throw cause
    const { message, details } = cause
    const faults = details.length > 0 ? details : [{ code: 'file', message }]
    return { document: { valid: false, faults }, text: () => message, status: 2 }
  }
}

async function printConfigFile(given: string | undefined, { config, json }: ConfigOptions): Promise<void> {
  const loaded = await loadConfig(given ?? expectConfig(config))
  console.log(json === true ? JSON.stringify(loaded, null, 2) : printConfig(loaded).trimEnd())
}
