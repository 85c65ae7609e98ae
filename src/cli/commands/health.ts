import type { Command } from 'commander'
import { Agent, request } from 'undici'

import { loadConfig } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { describeConnection } from '../../http/connection-error.ts'
import { configOption, expectConfig, readBase } from '../options.ts'
import { type Answer, answerWith } from '../text.ts'

const examples = `
Examples:
  markbridge health
  markbridge health --ready http://127.0.0.1:8080

Without an address, asks the adapter on this machine at the port of the
configuration. The certificate of the adapter is not checked.
Exit status: 0 the adapter answers that it is well, 1 it does not, 2 wrong usage
or configuration.`

export function addHealth(command: Command, exitWith: (status: number) => void): void {
  command
    .argument('[url]', 'base address of the adapter', readBase)
    .addOption(configOption('configuration file that has the port'))
    .option('--ready', 'ask whether the adapter can reach its journal too (/readyz in place of /healthz)')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(answerWith(exitWith, askHealth))
}

interface HealthOptions {
  readonly config?: string
  readonly ready?: boolean
}

/** The listen addresses that stand for all addresses of the machine. */
const everywhere: readonly string[] = ['0.0.0.0', '::', '[::]']

async function askHealth(base: URL | undefined, { config, ready = false }: HealthOptions): Promise<Answer> {
  const url = new URL(ready ? '/readyz' : '/healthz', base ?? (await ownAddress(config)))
  const found = await askStatus(url).then(
    (status) => ({ status, answer: `answers ${status}` }),
    (cause: unknown) => ({ status: undefined, answer: `cannot be reached: ${describeConnection(cause)}` }),
  )
  const isWell = found.status === 200
  return {
    document: { url: url.href, status: found.status ?? null, isWell },
    text: () => `${url.href} ${found.answer}.`,
    status: isWell ? 0 : 1,
    isRefusal: !isWell,
  }
}

const TIMEOUT_MS = 4_000

async function askStatus(url: URL): Promise<number> {
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  try {
    const { statusCode, body } = await request(url, { dispatcher, signal: AbortSignal.timeout(TIMEOUT_MS) })
    await body.dump()
    return statusCode
  } finally {
    await dispatcher.destroy()
  }
}

async function ownAddress(config: string | undefined): Promise<string> {
  const { listen } = await loadConfig(expectConfig(config), {}, { secretsOf: [] })
  if (listen.port === 0)
    throw new AdapterError(
      'ADP_USAGE',
      'The configuration has listen.port: 0, so the port is not known. No adapter was asked. Name the address.',
    )
  const host = everywhere.includes(listen.host) ? '127.0.0.1' : listen.host
  return `${listen.tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${listen.port}`
}
