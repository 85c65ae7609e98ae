export { changedPaths, type ConfigChanges, ownershipChanges, planReload, refuseReload } from './changes.ts'
export { type Environment, readEnvironment } from './environment.ts'
export { acceptsPlaintext, journalKeysOf, journalUrlOf, type JournalConfig } from './journal-schema.ts'
export { loadConfig, loadValues, type OnRead, packConfig, type PackedConfig, unpackConfig } from './load.ts'
export { listFaults, parseConfig, readValues } from './parse.ts'
export {
  type Config,
  type ConsoleConfig,
  createConfigJsonSchema,
  keysOf,
  type PartnerConfig,
  type Tuning,
  tuningOf,
} from './schema.ts'
export { decodeKey, Secret } from './secret.ts'
export { warningsOf } from './warnings.ts'
