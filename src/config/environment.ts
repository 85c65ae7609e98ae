import { existsSync } from 'node:fs'

export const CONFIG_FILE = 'markbridge.yaml'

/**
 * Returns the path of the configuration file for a command without `--config`: the value of `MARKBRIDGE_CONFIG`, or else `markbridge.yaml`
 * if the current folder contains this file. Returns `undefined` if there is no such file either.
 */
export function foundConfig(): string | undefined {
  return readEnvironment().config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined)
}

/** Returns the value of an environment variable that the configuration names, or `undefined` if the variable is not set. */
export function readVariable(name: string): string | undefined {
  return process.env[name]
}

/** The environment variables that Markbridge reads, except for the secrets that the configuration file refers to. */
export type Environment = ReturnType<typeof readEnvironment>

/** Reads the environment variables of Markbridge. An empty variable counts as unset. */
export function readEnvironment() {
  const read = (name: string): string | undefined =>
    process.env[name] === '' ? undefined : process.env[name]
  return {
    config: read('MARKBRIDGE_CONFIG'),
    /** The name of the package.json script that is running. */
    npmScript: read('npm_lifecycle_event'),
    logLevel: read('MARKBRIDGE_LOG_LEVEL'),
    /** The URL of the trace collector, which switches tracing on. OpenTelemetry reads this variable and its other variables itself. */
    otlpEndpoint: read('OTEL_EXPORTER_OTLP_ENDPOINT') ?? read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'),
    /** The outbound proxies by the scheme of the address, and the hosts without a proxy. As in curl, names in lower case take precedence. */
    proxies: {
      https: read('https_proxy') ?? read('HTTPS_PROXY'),
      http: read('http_proxy') ?? read('HTTP_PROXY'),
      no: read('no_proxy') ?? read('NO_PROXY'),
    },
    /** The credentials that `send` and `compare run` use. */
    subscriptionKey: read('MARKBRIDGE_SUBSCRIPTION_KEY'),
    token: read('MARKBRIDGE_TOKEN'),
    /** The credentials that `compare run` uses for V3, in place of the credentials above. */
    v3SubscriptionKey: read('MARKBRIDGE_V3_SUBSCRIPTION_KEY'),
    v3Token: read('MARKBRIDGE_V3_TOKEN'),
    operatorToken: read('MARKBRIDGE_OPERATOR_TOKEN'),
  }
}
