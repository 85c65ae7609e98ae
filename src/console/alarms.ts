import { formatCounted } from '../compare/report/format.ts'
import { GUARD_NAME } from '../rollout/guards/live-guards.ts'
import type { Overview, Trouble } from './data/port.ts'
import type { PartnerFacts } from './ports.ts'

export interface Alarm {
  /** `bad`: marks may be missing, or clients get errors now. `note`: the alarm can wait until later the same day. */
  readonly tone: 'bad' | 'note'
  readonly text: string
  /** The beginning of the trouble, or `undefined` if the beginning is not known. */
  readonly sinceMs: number | undefined
  readonly remedy: string
  readonly href: string | undefined
}

const troubles: Readonly<
  Record<Trouble['kind'], (partner: string, count: number) => Omit<Alarm, 'sinceMs'>>
> = {
  v3Fails: (_partner, count) => ({
    tone: 'bad',
    text: `V3 fails: ${formatCounted(count, 'call')} got no response or a server error.`,
    remedy: 'Ask the operator of V3. markbridge doctor checks its address, certificate and credentials from this machine.',
    href: '/batches?state=notApplied',
  }),
  denied: (partner, count) => ({
    tone: 'bad',
    text: `${partner}: V3 rejected the credentials of ${formatCounted(count, 'write')}.`,
    remedy: 'Ask the partner whether a client has an expired token, a wrong key, or no permission for attendance.',
    href: `/partners/${encodeURIComponent(partner)}`,
  }),
  ownDenied: (partner, count) => ({
    tone: 'bad',
    text: `${partner}: V3 rejected the configured key or token in ${formatCounted(count, 'call')}.`,
    remedy: 'Correct v3.subscriptionKey or v3.auth of the partner; the configuration is reloaded without a restart.',
    href: `/partners/${encodeURIComponent(partner)}`,
  }),
  notApplied: (partner, count) => ({
    tone: 'bad',
    text: `${partner}: V3 did not apply ${formatCounted(count, 'record')}. The client was told to resend the batches.`,
    remedy: 'The marks are missing until the client resends these batches. Once V3 accepts writes, check that the client has resent them.',
    href: `/batches?state=notApplied&partner=${encodeURIComponent(partner)}`,
  }),
  unknown: (partner, count) => ({
    tone: 'note',
    text: `${partner}: the outcome of ${formatCounted(count, 'record')} is unknown.`,
    remedy: 'Wait: the adapter reads the records back for a day. A record that stays unknown becomes a dead letter.',
    href: `/batches?state=unknown&partner=${encodeURIComponent(partner)}`,
  }),
  parked: (partner, count) => ({
    tone: 'note',
    text: `${partner}: ${formatCounted(count, 'record')} will be retried in the background.`,
    remedy: 'Wait: the adapter retries the records for a day. The action Retry makes them due at once.',
    href: `/letters?kind=parked&partner=${encodeURIComponent(partner)}`,
  }),
  deadLetters: (partner, count) => ({
    tone: 'bad',
    text: `${partner}: ${formatCounted(count, 'dead letter')}.`,
    remedy: 'Follow the remedy of each dead letter, then clear it.',
    href: `/letters?partner=${encodeURIComponent(partner)}`,
  }),
} // prettier-ignore

/** Returns the active alarms, the worst first. */
export function alarmsOf(
  { balances, instances, index, trouble }: Pick<Overview, 'balances' | 'instances' | 'index' | 'trouble'>,
  partners: readonly AlarmingPartner[],
): readonly Alarm[] {
  const alarms: Alarm[] = trouble.map(({ kind, partner = '', count, sinceMs }) => ({
    ...troubles[kind](partner, count),
    sinceMs,
  }))
  const trailFault = partners.find((one) => one.trailFault !== undefined)?.trailFault
  if (trailFault !== undefined)
    alarms.push({
      tone: 'bad',
      text: `The audit trail of stages is ${trailFault}`,
      sinceMs: undefined,
      remedy:
        'Find out who changed the database. Compare the trail with a certificate: markbridge rollout verify <certificate>.',
      href: '/audit',
    })
  for (const { partner, holds, checkedMs } of balances)
    if (holds === false)
      alarms.push({
        tone: 'bad',
        text: `The balance of ${partner} does not hold: the journal is damaged.`,
        sinceMs: checkedMs,
        remedy:
          'Run markbridge journal ls to see which total is wrong, and compare the journal with a backup.',
        href: undefined,
      })
  for (const one of partners) alarms.push(...alarmsOfStage(one))
  for (const { instance, host, state, leaseUntilMs } of instances) {
    if (state === 'live') continue
    const end = state === 'lost' ? 'was lost' : 'does not renew its lease'
    const remedy = `Check that the instance runs and reaches the journal. If the instance is off for good, run markbridge rollout dismiss ${instance} --reason "it is off".`
    alarms.push({ tone: 'bad', text: `Instance ${instance} on ${host} ${end}.`, sinceMs: leaseUntilMs, remedy, href: undefined }) // prettier-ignore
  }
  if (index.lostSteps > 0)
    alarms.push({
      tone: 'note',
      text: `${formatCounted(index.lostSteps, 'step')} of timelines could not be stored.`,
      sinceMs: undefined,
      remedy: 'Nothing needs to be done. The records are complete; only their timelines have gaps.',
      href: undefined,
    })
  return alarms.toSorted((one, other) => one.tone.localeCompare(other.tone))
}

type AlarmingPartner = Pick<PartnerFacts, 'document' | 'guardAlarm' | 'trailFault'>

function alarmsOfStage({ document, guardAlarm }: AlarmingPartner): readonly Alarm[] {
  const { partner, stage, by, reason, since, pending } = document
  const href = `/partners/${encodeURIComponent(partner)}`
  const alarms: Alarm[] = []
  const add = (tone: Alarm['tone'], text: string, since: number | undefined, remedy: string): void => {
    alarms.push({ tone, text, sinceMs: since, remedy, href })
  }
  if (by === GUARD_NAME)
    add('bad', `A guard took ${partner} back to ${stage}. ${reason ?? ''}`, since === null ? undefined : Date.parse(since), 'Find the cause in V3 before the next step forward.')
  else if (guardAlarm !== undefined)
    add('bad', `V3 does worse than V2 for ${partner}: ${guardAlarm}`, undefined, `Run markbridge rollout back ${partner} to let V2 serve the partner.`)
  if (pending?.needsApproval === true)
    add('note', `${partner}: a step by ${pending.by} waits for an approval.`, undefined, 'Approve the step, or take the partner back.')
  return alarms
} // prettier-ignore
