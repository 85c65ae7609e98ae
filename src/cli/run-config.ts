import { systemClock } from '../clock.ts'
import { createConfigJsonSchema, keysOf, loadConfig, warningsOf } from '../config/index.ts'
import { printConfig } from '../config/yaml.ts'
import { AdapterError } from '../errors.ts'

/** The flags of `config check` and `config print`. */
export interface ConfigOptions {
  readonly json?: boolean
}

/** Validates a file, prints the result, and returns the exit status. */
export async function checkConfigFile(file: string, { json }: ConfigOptions): Promise<number> {
  const loaded = await loadConfig(file).catch((cause: unknown) => {
    if (json !== true || !(cause instanceof AdapterError)) throw cause
    const { message, details } = cause
    const faults = details.length > 0 ? details : [{ code: 'file', message }]
    console.log(JSON.stringify({ valid: false, faults }))
  })
  if (loaded === undefined) return 2
  const partners = loaded.partners.map(({ id }) => id)
  const warnings = warningsOf(loaded, 1, new Date(systemClock.wallMs()).toISOString().slice(0, 10))
  if (json === true) {
    console.log(JSON.stringify({ valid: true, partners, warnings }))
    return 0
  }
  console.log(`${file} is valid: ${partners.length} partner(s): ${partners.join(', ')}`)
  for (const warning of warnings) console.log(`warning: ${warning}`)
  return 0
}

/** Prints the configuration of a file with its defaults and without its secrets, and the stages that its journal has. */
export async function printConfigFile(file: string, { json }: ConfigOptions): Promise<void> {
  const loaded = await loadConfig(file)
  const { commentStages, readConfiguredStages, stagesToJson } = await import('./rollout/configured-stages.ts')
  const stages = await readConfiguredStages(loaded)
  console.log(
    json === true
      ? JSON.stringify({ ...keysOf(loaded), ...stagesToJson(stages) }, null, 2)
      : `${printConfig(loaded)}\n${commentStages(stages)}`,
  )
}

/** Prints the JSON Schema of the configuration file. */
export function printConfigSchema(): void {
  console.log(JSON.stringify(createConfigJsonSchema(), null, 2))
}
