import { constants, existsSync, statSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

import type { Command } from 'commander'

import { openSides } from '../../app/open-sides.ts'
import { addressesOf, describeProxy, type UpstreamAddress } from '../../app/routes.ts'
import { highWaterFileOf } from '../../app/stages.ts'
import { systemClock } from '../../clock.ts'
import {
  acceptsPlaintext,
  type Config,
  expiryOf,
  journalKeysOf,
  journalUrlOf,
  loadConfig,
  readEnvironment,
  type Secret,
  warningsOf,
} from '../../config/index.ts'
import { writeMarkQuery } from '../../compare/run/queries.ts'
import { AdapterError } from '../../errors.ts'
import { isLoopback } from '../../http/address.ts'
import { clientCertificate, describeConnection, remedyOf } from '../../http/connection-error.ts'
import { openInspector, sqlitePathOf, tryOpening } from '../../journal/index.ts'
import { configOption, expectConfig } from '../options.ts'
import { probe } from '../probe.ts'
import { describeCause } from '../run-text.ts'
import { resolveSides } from '../target.ts'
import { type Answer, answerWith } from '../text.ts'

const examples = `
Examples:
  markbridge doctor
  markbridge doctor --config markbridge.yaml --json
  MARKBRIDGE_SUBSCRIPTION_KEY=… MARKBRIDGE_TOKEN=… markbridge doctor

Checks the configuration with its secrets, every address with its certificate
and clock, the journal, and the permissions of files. For each partner it reads
from V3 (and V2) with a query that matches no mark. Nothing is written. If the
clients of a partner send their own credentials, the read uses the credentials
of the environment, as compare run does.
Exit status: 0 nothing fails, 1 a check fails, 2 wrong usage.`

export function addDoctor(command: Command, exitWith: (status: number) => void): void {
  command
    .addOption(configOption('configuration file'))
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(answerWith(exitWith, examine))
}

type Finding = readonly [result: 'ok' | 'warning' | 'fails' | 'skipped', message: string, remedy?: string]

interface Check {
  readonly check: string
  readonly result: Finding[0]
  readonly message: string
  readonly remedy?: string
}

async function examine({ config: given }: { readonly config?: string }): Promise<Answer> {
  const path = expectConfig(given)
  const checks = await loadConfig(path).then((config) => examineConfig(path, config), reportInvalid)
  const failed = checks.filter(({ result }) => result === 'fails').length
  const lines = checks.flatMap(({ check, result, message, remedy }) => [
    `${result.padEnd(7)}  ${check}: ${message}`,
    ...(remedy === undefined ? [] : [`         -> ${remedy}`]),
  ])
  const end = failed === 0 ? 'Nothing fails.' : `${failed} of ${checks.length} checks fail.`
  return {
    document: { config: path, sound: failed === 0, checks },
    text: () => [...lines, '', end].join('\n'),
    status: failed === 0 ? 0 : 1,
  }
}

function reportInvalid(cause: unknown): readonly Check[] {
  if (!(cause instanceof AdapterError)) throw cause
  const remedy = 'Correct the file. docs/configuration.md describes all keys.'
  return [{ check: 'configuration', result: 'fails', message: cause.message, remedy }]
}

async function examineConfig(path: string, config: Config): Promise<readonly Check[]> {
  const { upstreams, partners } = config
  const today = new Date(systemClock.wallMs()).toISOString().slice(0, 10)
  const ids = partners.map(({ id }) => id).join(', ')
  const valid: Finding[] = [
    ['ok', `${path} is valid, and all its secrets can be read. Partners: ${ids}`],
    ...warningsOf(config, 1, today).map((warning): Finding => ['warning', warning]),
  ]
  const checks: readonly (readonly [string, readonly Finding[] | Promise<readonly Finding[]>])[] = [
    ['configuration', valid],
    ...addressesOf(config).map((address) => [address.name, examineAddress(config, address)] as const),
    ...listenersOf(config).map(([name, cert]) => [name, [examineOwnCertificate(cert)]] as const),
    ['journal', examineJournal(config)],
    ['permissions', examineFiles(path, config)],
    ...partners.flatMap((partner) => {
      const hasV2 = (partner.v2.baseUrl ?? upstreams.v2) !== undefined
      const sides = hasV2 ? (['V3', 'V2'] as const) : (['V3'] as const)
      return sides.map(
        (side) => [`read of ${side} for ${partner.id}`, examineRead(path, config, partner.id, side)] as const,
      )
    }),
  ]
  const found = checks.map(async ([check, findings]) =>
    (await findings).map(([result, message, remedy]) => {
      return { check, result, message, ...(remedy === undefined ? {} : { remedy }) }
    }),
  )
  return (await Promise.all(found)).flat()
}

const DAY_MS = 86_400_000
/**
 * The clock differences, in milliseconds, at which the check warns or fails. The adapter orders marks by time if their ids and contents do
 * not decide.
 */
const CLOCK_MS = { warning: 2_000, fails: 30_000 }

async function examineAddress(config: Config, { url, side }: UpstreamAddress): Promise<readonly Finding[]> {
  try {
    const proxy = describeProxy(config, url, side)
    const { status, aheadMs, certificateEndMs, certificateFault } = await probe(url, config, side)
    if (certificateFault !== undefined) {
      const [why, remedy] = clientCertificate[certificateFault]
      return [['fails', `${url.href} answers (${status}): ${why}`, remedy]]
    }
    const isSafe = url.protocol === 'https:' || isLoopback(url.hostname)
    return [
      isSafe
        ? ['ok', `${url.href} answers (${status})`]
        : ['warning', `${url.href} has no TLS`, 'Keys and marks are sent as clear text. Use https.'],
      ...(proxy === undefined ? [] : [['ok', `it is reached over the proxy ${proxy}`] as const]),
      ...(certificateEndMs === undefined ? [] : [examineCertificate(certificateEndMs)]),
      examineClock(aheadMs),
    ]
  } catch (cause) {
    if (cause instanceof AdapterError) return [['fails', cause.message]]
    return [['fails', `${url.href} cannot be reached: ${describeConnection(cause)}`, remedyOf(cause)]]
  }
}

/** The number of days before expiry at which a certificate should be renewed. */
const RENEWAL_DAYS = 30

function examineCertificate(endMs: number): Finding {
  const days = daysUntil(endMs)
  const message = `its certificate is trusted and expires in ${days} days`
  return days < RENEWAL_DAYS
    ? ['warning', message, 'Ask the operator of the service to renew the certificate.']
    : ['ok', message]
}

function listenersOf({ listen, console }: Config): readonly (readonly [string, Secret])[] {
  const all = [
    ['certificate in listen.tls', listen.tls],
    ['certificate in console.tls', console?.tls],
  ] as const
  return all.flatMap(([name, tls]) => (tls === undefined ? [] : [[name, tls.cert] as const]))
}

function examineOwnCertificate(cert: Secret): Finding {
  const days = daysUntil(expiryOf(cert))
  const remedy = 'Renew the certificate. A running adapter uses the new certificate after a reload (SIGHUP).'
  if (days < 0) return ['fails', 'it has expired, so clients refuse the connection', remedy]
  const message = `it expires in ${days} days`
  return days < RENEWAL_DAYS ? ['warning', message, remedy] : ['ok', message]
}

const daysUntil = (endMs: number): number => Math.floor((endMs - systemClock.wallMs()) / DAY_MS)

function examineClock(aheadMs: number | undefined): Finding {
  if (aheadMs === undefined)
    return ['skipped', 'the clock of the service is not known, because the response has no Date field']
  const seconds = Math.abs(Math.round(aheadMs / 1_000))
  const side = aheadMs > 0 ? 'ahead of' : 'behind'
  const message = `the clock of the service ${seconds === 0 ? 'agrees with' : `is ${seconds} s ${side}`} the clock of this machine`
  if (Math.abs(aheadMs) < CLOCK_MS.warning) return ['ok', message]
  const result = Math.abs(aheadMs) < CLOCK_MS.fails ? 'warning' : 'fails'
  return [
    result,
    message,
    'Synchronise this machine (timedatectl set-ntp true), or tell the operator of the service.',
  ]
}

async function examineJournal({ journal }: Config): Promise<readonly Finding[]> {
  const url = journalUrlOf(journal)
  if (url === 'none')
    return [['warning', 'there is no journal, so a resent batch is posted again', 'Set journal.url.']]
  const highWaterFile = highWaterFileOf(journal)
  try {
    const keys = { keys: journalKeysOf(journal), plaintextAccepted: acceptsPlaintext(journal) }
    if (await tryOpening({ url, highWaterFile, ...keys })) return await examineRecords(url, highWaterFile)
    const path = sqlitePathOf(url)
    return path === undefined
      ? [['ok', 'the database is empty, and the user may create tables; serve creates them']]
      : [await examineFolder(dirname(path), `${path} does not exist yet; serve creates it`)]
  } catch (cause) {
    if (!(cause instanceof AdapterError)) throw cause
    // The message of the error already contains the remedy.
    return [['fails', cause.message]]
  }
}

async function examineRecords(url: string, highWaterFile: string | undefined): Promise<readonly Finding[]> {
  const inspector = await openInspector(url, highWaterFile)
  try {
    const balances = await inspector.balances()
    const letters = await inspector.deadLetters({ limit: 1_000 })
    const wrong = balances.filter(({ holds }) => !holds).map(({ partner }) => partner)
    if (wrong.length > 0)
      return [
        ['fails', `the balance of ${wrong.join(', ')} does not add up`, 'Run markbridge journal check.'],
      ]
    return letters.length === 0
      ? [['ok', 'the journal can be read, and its balances add up']]
      : [['warning', `${letters.length} dead letter(s)`, 'Run markbridge journal ls --dead-letters.']]
  } finally {
    await inspector.close()
  }
}

/** Checks that this user may write to the folder. If the folder does not exist, checks the nearest existing parent. */
async function examineFolder(folder: string, message?: string): Promise<Finding> {
  let place = resolve(folder)
  while (!existsSync(place)) place = dirname(place)
  const remedy = `Make the user of the adapter the owner of the folder, or name another folder than ${folder}.`
  if (!statSync(place).isDirectory()) return ['fails', `${place} is not a folder`, remedy]
  const state = place === resolve(folder) ? 'can be written' : 'does not exist yet; serve creates it'
  return access(place, constants.W_OK | constants.X_OK).then(
    () => ['ok', message ?? `${folder} ${state}`],
    () => ['fails', `${place} cannot be written by this user`, remedy],
  )
}

async function examineFiles(path: string, { journal }: Config): Promise<readonly Finding[]> {
  const own = sqlitePathOf(journalUrlOf(journal)) ?? ''
  return [
    isOpen(path, 0o022)
      ? ['warning', `${path} can be changed by other users`, `Run chmod go-w ${path}.`]
      : ['ok', `${path} can be changed by its owner alone`],
    ...(isOpen(own, 0o077)
      ? [['warning', `${own} can be read by other users`, `Run chmod 600 ${own}*.`] as const]
      : []),
    ...(journal.stateDir === undefined ? [] : [await examineFolder(journal.stateDir)]),
  ]
}

const isOpen = (path: string, bits: number): boolean =>
  ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & bits) !== 0

/** The day and the learner of a query that finds nothing, because no learner has this id. */
const [AUGUST_MS, NOBODY] = [Date.parse('2020-08-01'), '00000000-0000-4000-8000-000000000000']
const QUERY = writeMarkQuery({ fromMs: AUGUST_MS, toMs: AUGUST_MS + DAY_MS }, [NOBODY])

async function examineRead(
  path: string,
  config: Config,
  partner: string,
  side: 'V2' | 'V3',
): Promise<readonly Finding[]> {
  const isV2 = side === 'V2'
  try {
    const flags = { config: path, partner, ...(isV2 ? {} : { v2: config.upstreams.v3.baseUrl }) }
    const resolved = await resolveSides(flags, readEnvironment())
    const sides = openSides({ ...resolved, onCodesUnknown: () => undefined })
    try {
      await sides.marks[isV2 ? 'v2' : 'v3'].page(isV2 ? QUERY.v2 : QUERY.v3, AbortSignal.timeout(10_000))
      return [['ok', 'the read succeeded']]
    } finally {
      await sides.close()
    }
  } catch (cause) {
    if (cause instanceof DOMException) return [['fails', 'there was no response within 10 s']]
    if (!(cause instanceof AdapterError)) throw cause
    // The clients of this partner send their own credentials, so the read needs credentials from the environment, which has none.
    if (cause.code === 'ADP_USAGE') return [['skipped', 'no credentials are given', cause.message]]
    return [['fails', describeCause(side, cause)]]
  }
}
