import { existsSync } from 'node:fs'

/** The name of the configuration file in the current folder. */
export const CONFIG_FILE = 'markbridge.yaml'

/**
 * Returns the path of the configuration for a command without `--config`: `MARKBRIDGE_CONFIG`, or else the file in the current folder.
 * Returns `undefined` if there is neither.
 */
export function foundConfig(): string | undefined {
  return readEnvironment().config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined)
}

/** Returns the value of an environment variable that a file names as the source of a secret, or `undefined` if the variable is not set. */
export function readVariable(name: string): string | undefined {
  return process.env[name]
}

/** The environment variables of the program, except for secrets that a file refers to. */
export type Environment = ReturnType<typeof readEnvironment>

/** Reads the environment variables of the program. An empty variable counts as unset. */
export function readEnvironment() {
  const read = (name: string): string | undefined =>
    process.env[name] === '' ? undefined : process.env[name]
  return {
    config: read('MARKBRIDGE_CONFIG'),
    /** The name of the package.json script that is running. */
    npmScript: read('npm_lifecycle_event'),
    /** The log level. The logger validates it. */
    logLevel: read('MARKBRIDGE_LOG_LEVEL'),
    /** The endpoint of traces. Tracing is on if it is set. OpenTelemetry reads this variable and its other standard variables itself. */
    otlpEndpoint: read('OTEL_EXPORTER_OTLP_ENDPOINT') ?? read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'),
    /** The credentials that `send` and `compare run` use. */
    subscriptionKey: read('MARKBRIDGE_SUBSCRIPTION_KEY'),
    token: read('MARKBRIDGE_TOKEN'),
    /** The credentials that `compare run` uses for V3 instead. */
    v3SubscriptionKey: read('MARKBRIDGE_V3_SUBSCRIPTION_KEY'),
    v3Token: read('MARKBRIDGE_V3_TOKEN'),
    /** The secret token of the operator who changes stages. */
    operatorToken: read('MARKBRIDGE_OPERATOR_TOKEN'),
  }
}
