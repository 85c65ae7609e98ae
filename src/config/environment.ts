import { existsSync } from 'node:fs'

/** The configuration in the present folder. */
export const CONFIG_FILE = 'markbridge.yaml'

/** The configuration of a command that names none: `MARKBRIDGE_CONFIG`, then the file of this folder; undefined: there is none. */
export function foundConfig(): string | undefined {
  return readEnvironment().config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined)
}

/** The value of a variable that a file names as the source of a secret. */
export function readVariable(name: string): string | undefined {
  return process.env[name]
}

/** The environment variables of the program, besides the secrets that a file names. */
export type Environment = ReturnType<typeof readEnvironment>

/** Reads the variables; an empty one counts as unset. */
export function readEnvironment() {
  const read = (name: string): string | undefined =>
    process.env[name] === '' ? undefined : process.env[name]
  return {
    /** The path of the configuration. */
    config: read('MARKBRIDGE_CONFIG'),
    /** The script of package.json that runs. */
    npmScript: read('npm_lifecycle_event'),
    /** One of the levels of the logger; checked where that is created. */
    logLevel: read('MARKBRIDGE_LOG_LEVEL'),
    /** Traces are sent where this is set; OpenTelemetry reads it, and the other variables of its standard, by itself. */
    otlpEndpoint: read('OTEL_EXPORTER_OTLP_ENDPOINT') ?? read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'),
    /** What `send` and `compare run` send. */
    subscriptionKey: read('MARKBRIDGE_SUBSCRIPTION_KEY'),
    token: read('MARKBRIDGE_TOKEN'),
    /** What `compare run` sends to V3 instead. */
    v3SubscriptionKey: read('MARKBRIDGE_V3_SUBSCRIPTION_KEY'),
    v3Token: read('MARKBRIDGE_V3_TOKEN'),
    /** Who acts on stages. A secret. */
    operatorToken: read('MARKBRIDGE_OPERATOR_TOKEN'),
  }
}
