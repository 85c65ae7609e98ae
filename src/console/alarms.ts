import { formatCounted } from '../compare/report/format.ts'
import { GUARD_NAME } from '../rollout/guards/live-guards.ts'
import type { EntryDocument } from '../rollout/partner-document.ts'
import type { Overview, Trouble } from './data/port.ts'
import type { InstanceHealth, PartnerFacts } from './ports.ts'

export interface Alarm {
  readonly kind: AlarmKind
  /** `bad`: marks may be missing, or clients get errors now. `note`: the alarm can wait until later the same day. */
  readonly tone: 'bad' | 'note'
  readonly text: string
  /** The partner, or `undefined` if the alarm concerns all partners. */
  readonly partner: string | undefined
  /** The beginning of the trouble, or `undefined` if the beginning is not known. */
  readonly sinceMs: number | undefined
  readonly remedy: string
  /** The address and the name of the page on which to act, or `undefined` if the remedy is outside the console. */
  readonly link: readonly [href: string, text: string] | undefined
}

export interface Checked {
  /** The active alarms, the worst first. */
  readonly alarms: readonly Alarm[]
  /** The conditions that could not be checked, each as the end of a sentence `Not checked: …`. */
  readonly unchecked: readonly string[]
}

interface Evidence {
  readonly nowMs: number
  /** The state of the journal, or `undefined` if the journal cannot be read. */
  readonly found: Pick<Overview, 'balances' | 'instances' | 'trouble' | 'reportedMs'> | undefined
  /** The partners with their stages, or `undefined` if the stages cannot be read. */
  readonly partners: readonly AlarmingPartner[] | undefined
  /** The newest entries of the audit trail, which contain the time at which a pending step was proposed. */
  readonly entries: readonly EntryDocument[]
  /**
   * The health of the adapter in this process, or `undefined` if the instances run in other processes. The leases then show which instances
   * reach the journal.
   */
  readonly health: InstanceHealth | undefined
}

type AlarmingPartner = Pick<PartnerFacts, 'document' | 'guardAlarm' | 'trailFault'>

type Rule = Readonly<{ tone: Alarm['tone']; remedy: string; link?: (partner: string) => Alarm['link'] }>

const toPartner = (partner: string) => [`/partners/${partner}`, 'Open the partner'] as const
const toLetters = (kind: string, text: string) => (partner: string) =>
  [`/letters?kind=${kind}&partner=${partner}`, text] as const
/** The kinds of alarms, the most serious first. */
const rules = {
  journalUnavailable: { tone: 'bad', remedy: 'Check whether the database is down or the disk is full.' },
  journalDamaged: { tone: 'bad', remedy: 'Run markbridge journal ls to see which total is wrong, and compare the journal with a backup.' },
  v3Fails: { tone: 'bad', remedy: 'Ask the operator of V3. markbridge doctor checks its address, certificate and credentials from this machine.', link: () => ['/letters?kind=notApplied', 'Show the records that V3 did not apply'] },
  v2Fails: { tone: 'bad', remedy: 'Ask the operator of V2. markbridge doctor checks its address and certificate from this machine.', link: () => ['/partners', 'Show the partners that V2 serves'] },
  ownDenied: { tone: 'bad', remedy: 'Correct v3.subscriptionKey or v3.auth of the partner; the configuration is reloaded without a restart.', link: toPartner },
  noToken: { tone: 'bad', remedy: 'Check the token endpoint and v3.auth.tokenUrl of the partner. markbridge doctor asks the endpoint for a token from this machine.', link: toPartner },
  guardActed: { tone: 'bad', remedy: 'Find the cause in V3 before the next step forward.', link: toPartner },
  guardWarns: { tone: 'bad', remedy: 'Take the partner back to let V2 serve it.', link: toPartner },
  notApplied: { tone: 'bad', remedy: 'The clients were told to resend the batches and have not. The marks are missing until they do. Once V3 accepts writes, ask the clients to resend.', link: toLetters('notApplied', 'Show the records') },
  deadLetters: { tone: 'bad', remedy: 'Follow the remedy of each dead letter, then clear it.', link: toLetters('deadLetters', 'Show the dead letters') },
  denied: { tone: 'bad', remedy: 'Ask the partner whether a client has an expired token, a wrong key, or no permission for attendance.', link: toPartner },
  trailBroken: { tone: 'bad', remedy: 'Find out who changed the database. Compare the trail with a certificate: markbridge rollout verify <certificate>.', link: () => ['/audit', 'Show the audit trail'] },
  instanceGone: { tone: 'bad', remedy: 'Check that the instance runs and reaches the journal.' },
  stagesStale: { tone: 'bad', remedy: 'Check that the database answers in time.', link: () => ['/partners', 'Show the stages'] },
  unknown: { tone: 'note', remedy: 'Wait: the adapter looks for the marks in V3 for a day, unless v3.readBackAfterMs is empty. A record that stays unknown becomes a dead letter.', link: toLetters('parked', 'Show the records') },
  parked: { tone: 'note', remedy: 'Wait: the adapter retries the records for a day. The action Retry makes them due at once.', link: toLetters('parked', 'Show the records') },
  v3Throttles: { tone: 'note', remedy: 'Find the other program that uses the same subscription key, or lower v3.callsPerSecond.', link: () => ['/partners', 'Show the partners'] },
  stepWaits: { tone: 'note', remedy: 'Approve the step, or take the partner back.', link: toPartner },
} as const satisfies Readonly<Record<string, Rule>> // prettier-ignore

type AlarmKind = keyof typeof rules

const texts: Readonly<Record<Trouble['kind'], (count: number) => string>> = {
  v3Fails: (count) => `V3 fails: ${formatCounted(count, 'call')} got no response or a server error.`,
  v2Fails: (count) => `V2 fails: ${formatCounted(count, 'call')} got no response or a server error.`,
  v3Throttles: (count) => `V3 limits the rate of calls: it answered 429 to ${formatCounted(count, 'call')}.`,
  denied: (count) => `V3 rejected the credentials of clients in ${formatCounted(count, 'write')}.`,
  ownDenied: (count) =>
    `V3 or its token endpoint rejected the configured key or client in ${formatCounted(count, 'call')}.`,
  noToken: (count) => `The token endpoint issued no token for V3 in ${formatCounted(count, 'request')}.`,
  notApplied: (count) => `V3 did not apply ${formatCounted(count, 'record')}.`,
  unknown: (count) => `The outcome of ${formatCounted(count, 'record')} is unknown.`,
  parked: (count) => `${formatCounted(count, 'record')} will be retried in the background.`,
  deadLetters: (count) => `The adapter no longer retries ${formatCounted(count, 'dead letter')}.`,
}

/** The age in milliseconds at which records that the adapter reads back or retries become an alarm of the tone `bad`. */
const OLD_MS = 3_600_000
/** The ages in milliseconds at which a report of calls, a check of a balance, and a read of the stages are out of date. */
const [REPORT_MS, CHECK_MS, STAGES_MS] = [60_000, 300_000, 5_000]

export function checkAlarms({ nowMs, found, partners, entries, health }: Evidence): Checked {
  const alarms: Alarm[] = []
  const add = (kind: AlarmKind, text: string, more: Partial<Alarm> = {}): void => {
    const { tone, remedy, link }: Rule = rules[kind]
    const { partner } = more
    const to = link?.(encodeURIComponent(partner ?? ''))
    alarms.push({ ...{ kind, tone, text, partner, sinceMs: undefined, remedy, link: to }, ...more })
  }
  // If the adapter in this process reaches the journal, a failed query of the console raises no alarm.
  if (health?.journal === 'unavailable' || (found === undefined && health === undefined))
    add('journalUnavailable', 'The journal is unavailable. Writes get 503, and nothing is posted.')
  if (health?.journal === 'damaged')
    add('journalDamaged', 'The journal is damaged. Writes get 503, and nothing is posted.')
  if (health !== undefined && (health.stagesAgeMs ?? Infinity) > STAGES_MS)
    add('stagesStale', 'The adapter cannot read the stages, so it would not notice a step back.', {
      sinceMs: health.stagesAgeMs === undefined ? undefined : nowMs - health.stagesAgeMs,
    })
  for (const { kind, partner, count, sinceMs } of found?.trouble ?? []) {
    const isOld = (kind === 'unknown' || kind === 'parked') && nowMs - sinceMs > OLD_MS
    add(kind, texts[kind](count), { partner, sinceMs, ...(isOld && { tone: 'bad' }) })
  }
  for (const { partner, holds, checkedMs } of found?.balances ?? [])
    if (holds === false)
      add(
        'journalDamaged',
        'The totals of the partner contradict its stored records: the journal is damaged. The outcomes of some records may be wrong or missing.',
        {
          partner,
          sinceMs: checkedMs,
        },
      )
  for (const { instance, host, state, leaseUntilMs: sinceMs } of found?.instances ?? []) {
    if (state === 'live') continue
    const end = state === 'lost' ? 'was lost' : 'does not renew its lease'
    const remedy = `${rules.instanceGone.remedy} If the instance is off for good, run markbridge rollout dismiss ${instance} --reason "it is off".`
    add('instanceGone', `Instance ${instance} on ${host} ${end}.`, { sinceMs, remedy })
  }
  const trailFault = partners?.find((one) => one.trailFault !== undefined)?.trailFault
  if (trailFault !== undefined) add('trailBroken', `The audit trail of stages is ${trailFault}`)
  for (const { document, guardAlarm } of partners ?? []) {
    const { partner, stage, by, reason, since, pending } = document
    if (by === GUARD_NAME) {
      const sinceMs = since === null ? undefined : Date.parse(since)
      add('guardActed', `A guard took the partner back to ${stage}. ${reason ?? ''}`, { partner, sinceMs })
    } else if (guardAlarm !== undefined) add('guardWarns', guardAlarm, { partner })
    if (pending?.needsApproval === true) {
      const proposed = entries.find((one) => one.partner === partner && one.revision === pending.revision)
      const sinceMs = proposed && Date.parse(proposed.at)
      add('stepWaits', `A step by ${pending.by} waits for an approval.`, { partner, sinceMs })
    }
  }
  const order = Object.keys(rules)
  return {
    alarms: alarms.toSorted(
      (one, other) =>
        one.tone.localeCompare(other.tone) || order.indexOf(one.kind) - order.indexOf(other.kind),
    ),
    unchecked: findUnchecked(nowMs, found, partners),
  }
}

function findUnchecked(
  nowMs: number,
  found: Evidence['found'],
  partners: Evidence['partners'],
): readonly string[] {
  const unchecked: string[] = []
  if (found === undefined) unchecked.push('the records and the balances, since the journal cannot be read')
  else if (found.reportedMs === undefined || nowMs - found.reportedMs > REPORT_MS)
    unchecked.push('calls and credentials, since no instance has reported in the last minute')
  const late = (found?.balances ?? []).filter(({ checkedMs = 0 }) => nowMs - checkedMs > CHECK_MS)
  if (late.length > 0)
    unchecked.push(`the balance of ${late.map(({ partner }) => partner).join(', ')} in the last 5 minutes`)
  if (partners === undefined) unchecked.push('stages and guards, since the stages cannot be read')
  return unchecked
}
