import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

import { runCommand } from '../../cli/run-command.ts'
import { journalFile } from '../../e2e/support/journal-file.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { startAdapter } from '../../support/start-adapter.ts'

const rulesFile = fileURLToPath(new URL('../../../deploy/alerts.yaml', import.meta.url))

interface Rule {
  readonly alert: string
  readonly for?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<'summary' | 'description', string>>
}
const { groups } = parse(await readFile(rulesFile, 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[]
}
const rules = groups.flatMap((group) => group.rules)

/** A series in the notation of promtool: its name with labels, and its values. */
type Series = readonly [series: string, values: string]

/** A test case for one rule, whose series are scraped every minute. */
interface Case {
  readonly alert: string
  readonly series: readonly Series[]
  readonly at: string
  /** The labels of the alert besides the labels of the rule, or `undefined` if no alert fires. */
  readonly fires: Readonly<Record<string, string>> | undefined
}

const own = (name: string, labels = ''): string =>
  `markbridge_${name}{job="markbridge",instance="one"${labels}}`
const acme = ',partner="acme"'
const one = { job: 'markbridge', instance: 'one' }
const ofAcme = { ...one, partner: 'acme' }
const calls = (status: string): string =>
  own('v3_call_duration_seconds_count', `,kind="write",status="${status}"`)
const bucket = (le: string): string => own('queue_wait_seconds_bucket', `,priority="write",le="${le}"`)
const states = (state: string): string => own('journal_records', `${acme},state="${state}"`)

const cases: readonly Case[] = [
  { alert: 'MarkbridgeDown', series: [['up{job="markbridge",instance="one"}', '1 0x9']], at: '5m', fires: one },
  { alert: 'MarkbridgeDown', series: [['up{job="markbridge",instance="one"}', '1x9']], at: '5m', fires: undefined },
  { alert: 'MarkbridgeJournalUnavailable', series: [[own('journal_available'), '1 0x9']], at: '5m', fires: one },
  { alert: 'MarkbridgeJournalUnavailable', series: [[own('journal_available'), '1x9']], at: '5m', fires: undefined },
  // One failed record in fifty is below the limit.
  { alert: 'MarkbridgeWritesFail', series: [[own('records_total', `${acme},outcome="accepted"`), '0+49x20'], [own('records_total', `${acme},outcome="unknown"`), '0+1x20']], at: '10m', fires: undefined },
  { alert: 'MarkbridgeWritesFail', series: [[own('records_total', `${acme},outcome="accepted"`), '0+90x20'], [own('records_total', `${acme},outcome="unknown"`), '0+10x20']], at: '10m', fires: { partner: 'acme' } },
  // A record that V3 refuses is not a failure of V3.
  { alert: 'MarkbridgeWritesFail', series: [[own('records_total', `${acme},outcome="accepted"`), '0+90x20'], [own('records_total', `${acme},outcome="refused"`), '0+90x20']], at: '10m', fires: undefined },
  { alert: 'MarkbridgeV3Fails', series: [[calls('none'), '0+60x20'], [calls('2xx'), '0+40x20']], at: '10m', fires: { instance: 'one' } },
  { alert: 'MarkbridgeV3Fails', series: [[calls('5xx'), '0+40x20'], [calls('2xx'), '0+60x20']], at: '10m', fires: undefined },
  { alert: 'MarkbridgeRequestsRefused', series: [[own('requests_refused_total', ',code="ADP_V3_CREDENTIALS"'), '1+5x20']], at: '10m', fires: { code: 'ADP_V3_CREDENTIALS' } },
  { alert: 'MarkbridgeRequestsRefused', series: [[own('requests_refused_total', ',code="ADP_BOUNDARY"'), '1+5x20']], at: '10m', fires: undefined },
  { alert: 'MarkbridgeUnknownOutcomes', series: [[own('records_total', `${acme},outcome="unknown"`), '0x9 1x9']], at: '15m', fires: { ...ofAcme, outcome: 'unknown' } },
  { alert: 'MarkbridgeUnknownOutcomes', series: [[own('records_total', `${acme},outcome="unknown"`), '7x20']], at: '15m', fires: undefined },
  ...['notApplied', 'unknown', 'parked'].flatMap((state): Case[] => [
    { alert: 'MarkbridgeRecordsStuck', series: [[states(state), '0x9 30x90']], at: '90m', fires: { partner: 'acme' } },
    { alert: 'MarkbridgeRecordsStuck', series: [[states(state), '0x9 30x30 0x60']], at: '90m', fires: undefined },
  ]),
  // A constant total must not fire, because it may consist of old records that will never be settled.
  { alert: 'MarkbridgeRecordsStuck', series: [[states('unknown'), '30x90']], at: '90m', fires: undefined },
  { alert: 'MarkbridgeDeadLetters', series: [[own('journal_dead_letters', acme), '0x3 2x9']], at: '5m', fires: { partner: 'acme' } },
  { alert: 'MarkbridgeDeadLetters', series: [[own('journal_dead_letters', acme), '2x3 0x9']], at: '5m', fires: undefined },
  { alert: 'MarkbridgeV3Throttles', series: [[calls('429'), '0+1x30']], at: '25m', fires: { instance: 'one' } },
  { alert: 'MarkbridgeV3Throttles', series: [[calls('429'), '9x30']], at: '25m', fires: undefined },
  { alert: 'MarkbridgeQueueSlow', series: [[bucket('30'), '0+1x30'], [bucket('60'), '0+9x30'], [bucket('+Inf'), '0+9x30']], at: '25m', fires: {} },
  { alert: 'MarkbridgeQueueSlow', series: [[bucket('30'), '0+9x30'], [bucket('60'), '0+9x30'], [bucket('+Inf'), '0+9x30']], at: '25m', fires: undefined },
  { alert: 'MarkbridgeNoToken', series: [[own('token_failures_total', acme), '0x3 1 2 3x9']], at: '7m', fires: ofAcme },
  { alert: 'MarkbridgeNoToken', series: [[own('token_failures_total', acme), '1x20']], at: '7m', fires: undefined },
  { alert: 'MarkbridgeOwnCredentialsDenied', series: [[own('own_credentials_denied_total', `${acme},what="token"`), '0x3 1x9']], at: '5m', fires: { ...ofAcme, what: 'token' } },
  { alert: 'MarkbridgeOwnCredentialsDenied', series: [[own('own_credentials_denied_total', `${acme},what="token"`), '1x20']], at: '5m', fires: undefined },
  { alert: 'MarkbridgeClientCredentialsDenied', series: [[own('credentials_denied_total', acme), '0+1x90']], at: '65m', fires: ofAcme },
  { alert: 'MarkbridgeClientCredentialsDenied', series: [[own('credentials_denied_total', acme), '0 1x90']], at: '65m', fires: undefined },
  { alert: 'MarkbridgeStagesStale', series: [[own('stage_age_seconds'), '0.1 60 120 180x9']], at: '5m', fires: one },
  { alert: 'MarkbridgeStagesStale', series: [[own('stage_age_seconds'), '0.1x9']], at: '5m', fires: undefined },
  { alert: 'MarkbridgeStageRefused', series: [[own('stage_refused_total', `${acme},reason="stale"`), '0 1x9']], at: '3m', fires: { ...ofAcme, reason: 'stale' } },
  { alert: 'MarkbridgeStageRefused', series: [[own('stage_refused_total', `${acme},reason="stale"`), '1x9']], at: '3m', fires: undefined },
  { alert: 'MarkbridgeGuardActed', series: [[own('stage_guard_actions_total', acme), '0 1x9']], at: '3m', fires: ofAcme },
  { alert: 'MarkbridgeGuardActed', series: [[own('stage_guard_actions_total', acme), '1x9']], at: '3m', fires: undefined },
  { alert: 'MarkbridgeGuardWarns', series: [[own('stage_guard_warnings_total', acme), '0 1x9']], at: '3m', fires: ofAcme },
  { alert: 'MarkbridgeGuardWarns', series: [[own('stage_guard_warnings_total', acme), '1x9']], at: '3m', fires: undefined },
  { alert: 'MarkbridgeUnrecorded', series: [[own('stage_unrecorded_total', acme), '0 1x9']], at: '3m', fires: ofAcme },
  { alert: 'MarkbridgeUnrecorded', series: [[own('stage_unrecorded_total', acme), '1x9']], at: '3m', fires: undefined },
  { alert: 'MarkbridgeRecoveryFails', series: [[own('recovery_failures_total', ',code="ADP_INTERNAL"'), '1+1x90']], at: '65m', fires: { ...one, code: 'ADP_INTERNAL' } },
  { alert: 'MarkbridgeRecoveryFails', series: [[own('recovery_failures_total', ',code="ADP_INTERNAL"'), '1 2x90']], at: '65m', fires: undefined },
  { alert: 'MarkbridgeInternalErrors', series: [[own('internal_errors_total'), '0 1x9']], at: '3m', fires: one },
  { alert: 'MarkbridgeInternalErrors', series: [[own('internal_errors_total'), '1x9']], at: '3m', fires: undefined },
  { alert: 'MarkbridgeReloadRefused', series: [[own('config_reloads_total', ',result="refused"'), '0 1x9']], at: '3m', fires: { ...one, result: 'refused' } },
  { alert: 'MarkbridgeReloadRefused', series: [[own('config_reloads_total', ',result="reloaded"'), '0 1x9']], at: '3m', fires: undefined },
  { alert: 'MarkbridgeCertificateExpires', series: [[own('listener_certificate_expiry_timestamp_seconds'), '1200000x9']], at: '5m', fires: one },
  { alert: 'MarkbridgeCertificateExpires', series: [[own('listener_certificate_expiry_timestamp_seconds'), '1300000x9']], at: '5m', fires: undefined },
  { alert: 'MarkbridgeDifferences', series: [[own('compare_records_total', `${acme},check="reply",kind="marks",verdict="differs"`), '1+1x150']], at: '130m', fires: { partner: 'acme' } },
  { alert: 'MarkbridgeDifferences', series: [[own('compare_records_total', `${acme},check="reply",kind="marks",verdict="same"`), '1+1x150']], at: '130m', fires: undefined },
] // prettier-ignore

interface Recorded {
  readonly interval: string
  readonly series: readonly { readonly series: string; readonly values: string }[]
}
const recorded = JSON.parse(await readFile(new URL('outage.json', import.meta.url), 'utf8')) as Recorded

/** All alerts that fire at three times of the recording, in which V3 is out of service from minute 2 to minute 5. */
const outage: readonly (readonly [at: string, alerts: Readonly<Record<string, object>>])[] = [
  ['1m45s', {}],
  ['5m', { MarkbridgeWritesFail: { partner: 'default' }, MarkbridgeV3Fails: { instance: 'one' } }],
  ['10m45s', {}],
]

function ruleOf(alert: string): Rule {
  const rule = rules.find((each) => each.alert === alert)
  if (rule === undefined) throw new Error(`no rule ${alert}`)
  return rule
}

/** Returns the expectation of promtool for a rule at a time: an alert with these labels, or no alert. */
function alertTest(alert: string, at: string, fires: object | undefined): object {
  const labels = { ...ruleOf(alert).labels, ...fires }
  return { eval_time: at, alertname: alert, exp_alerts: fires === undefined ? [] : [{ exp_labels: labels }] }
}

/** Runs promtool on the rules, and returns its output. Leaves out the texts of the alerts, which promtool would compare too. */
async function testRules(tests: readonly object[]): Promise<string> {
  const folder = await makeFolder()
  const bare = {
    groups: [{ name: 'markbridge', rules: rules.map((rule) => ({ ...rule, annotations: {} })) }],
  }
  await writeFile(join(folder, 'rules.json'), JSON.stringify(bare))
  await writeFile(join(folder, 'tests.json'), JSON.stringify({ rule_files: ['rules.json'], tests }))
  const { stdout, stderr } = spawnSync('promtool', ['test', 'rules', join(folder, 'tests.json')], { encoding: 'utf8' }) // prettier-ignore
  return stdout + stderr
}

const isMissing = spawnSync('promtool', ['--version']).error !== undefined
if (isMissing)
  console.warn(
    'SKIPPED: promtool tests the rules of deploy/alerts.yaml (Debian: apt-get install prometheus).',
  )

describe('deploy/alerts.yaml', () => {
  it('has for each rule a test case in which it fires and one in which it does not', () => {
    const kinds = (fires: boolean): Set<string> =>
      new Set(cases.filter((each) => (each.fires !== undefined) === fires).map(({ alert }) => alert))
    const names = new Set(rules.map(({ alert }) => alert))
    expect(kinds(true)).toEqual(names)
    expect(kinds(false)).toEqual(names)
  })

  it.skipIf(isMissing)('fires alerts in exactly the test cases that expect an alert', async () => {
    const tests = cases.map(({ alert, series, at, fires }, index) => ({
      name: `${index} ${alert}`,
      interval: '1m',
      input_series: series.map(([name, values]) => ({ series: name, values })),
      alert_rule_test: [alertTest(alert, at, fires)],
    }))
    expect(await testRules(tests)).toMatch(/SUCCESS\s*$/)
  })

  it.skipIf(isMissing)('fires alerts during a recorded outage of three minutes, and not before or after the outage', async () => {
    const tests = [
      {
        interval: recorded.interval,
        input_series: recorded.series,
        alert_rule_test: outage.flatMap(([at, fires]) =>
          rules.map(({ alert }) => alertTest(alert, at, fires[alert])),
        ),
      },
    ]
    expect(await testRules(tests)).toMatch(/SUCCESS\s*$/)
  }) // prettier-ignore

  it.skipIf(isMissing)('still fires an hour after the outage for the marks that no client resent', async () => {
    const series = recorded.series.map(({ series: name, values }) => ({
      series: name,
      values: `${values} ${(/(\d+)(?:x\d+)?$/.exec(values)?.[1] ?? '0')}x400`,
    }))
    const fires = { partner: 'default' }
    const test = { interval: '15s', input_series: series, alert_rule_test: [alertTest('MarkbridgeRecordsStuck', '75m', fires)] }
    expect(await testRules([test])).toMatch(/SUCCESS\s*$/)
  }) // prettier-ignore
})

describe('the text of the alerts in deploy/alerts.yaml', () => {
  const commands = [
    ...new Set(
      rules.flatMap(({ annotations: { description } }) =>
        [...description.matchAll(/`markbridge ([^`]+)`/g)].map(([, command = '']) => command),
      ),
    ),
  ]

  it('names more than five different commands', () => {
    expect(commands.length).toBeGreaterThan(5)
  })

  it.each(commands)('names the command %s, which the program accepts', async (command) => {
    const journal = journalFile()
    const adapter = await startAdapter('http://127.0.0.1:1', { journal: { url: journal.url } })
    const file = join(await makeFolder(), 'markbridge.yaml')
    const partners = [{ id: 'acme', match: { any: true } }]
    await writeFile(
      file,
      JSON.stringify({ journal: { url: journal.url }, upstreams: { v3: { baseUrl: adapter.url } }, partners }),
    )
    const words = command.replaceAll('{{ $labels.partner }}', 'acme').split(' ')
    const { status, stdout, stderr } = await runCommand([...words, '--config', file])
    expect([status === 2, stdout + stderr], stderr).toEqual([/no results for this partner/.test(stderr), expect.anything()])
  }) // prettier-ignore
})
