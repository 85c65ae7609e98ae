import { GUARD_NAME } from '../rollout/guards/live-guards.ts'
import type { Overview, Trouble } from './data/port.ts'
import type { PartnerStage } from './ports.ts'

/** Something that an operator has to look at. */
export interface Alarm {
  /** `bad`: marks may be missing, or clients get errors now. `note`: it can wait until later the same day. */
  readonly tone: 'bad' | 'note'
  readonly text: string
  /** Milliseconds since the epoch, or `undefined` if the beginning is not known. */
  readonly sinceMs: number | undefined
  readonly remedy: string
  /** The page with the details, or `undefined` if there is none. */
  readonly href: string | undefined
}

const counted = (count: number, one: string): string =>
  `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`

const troubles: Readonly<
  Record<Trouble['kind'], (partner: string, count: number) => Omit<Alarm, 'sinceMs'>>
> = {
  v3Fails: (_partner, count) => ({
    tone: 'bad',
    text: `V3 fails: ${counted(count, 'call')} got no answer or an error of the service.`,
    remedy: 'Ask the service. markbridge doctor checks its address, certificate and credentials from here.',
    href: '/batches?state=notApplied',
  }),
  denied: (partner, count) => ({
    tone: 'bad',
    text: `${partner}: V3 denied the credentials of ${counted(count, 'write')}.`,
    remedy: 'A client has an expired token, a wrong key, or no security domain for attendance: tell the partner.',
    href: `/partners/${encodeURIComponent(partner)}`,
  }),
  ownDenied: (partner, count) => ({
    tone: 'bad',
    text: `${partner}: V3 denied the key or token of the configuration for ${counted(count, 'call')}.`,
    remedy: 'Correct v3.subscriptionKey or v3.auth of the partner; the configuration is reloaded without a restart.',
    href: `/partners/${encodeURIComponent(partner)}`,
  }),
  notApplied: (partner, count) => ({
    tone: 'bad',
    text: `${partner}: V3 did not take ${counted(count, 'record')}, and their client was told to send again.`,
    remedy: 'Once V3 takes writes, see that the client sends these batches again: until then the marks are missing.',
    href: `/batches?state=notApplied&partner=${encodeURIComponent(partner)}`,
  }),
  unknown: (partner, count) => ({
    tone: 'note',
    text: `${partner}: the outcome of ${counted(count, 'record')} is unknown.`,
    remedy: 'Nothing at first: they are read back for a day. What stays unknown becomes a dead letter.',
    href: `/batches?state=unknown&partner=${encodeURIComponent(partner)}`,
  }),
  parked: (partner, count) => ({
    tone: 'note',
    text: `${partner}: the background is to try ${counted(count, 'record')} again.`,
    remedy: 'They are tried again for a day by themselves. Retry makes them due at once.',
    href: `/letters?kind=parked&partner=${encodeURIComponent(partner)}`,
  }),
  deadLetters: (partner, count) => ({
    tone: 'bad',
    text: `${partner}: ${counted(count, 'dead letter')}.`,
    remedy: 'Do what the remedy of each says, then clear it.',
    href: `/letters?partner=${encodeURIComponent(partner)}`,
  }),
} // prettier-ignore

/** Returns the alarms that follow from the state of the system, the worst first. An empty list means that no alarm is active. */
export function alarmsOf(
  { balances, instances, index, trouble }: Pick<Overview, 'balances' | 'instances' | 'index' | 'trouble'>,
  stages: readonly PartnerStage[],
): readonly Alarm[] {
  const alarms: Alarm[] = trouble.map(({ kind, partner = '', count, sinceMs }) => ({
    ...troubles[kind](partner, count),
    sinceMs,
  }))
  for (const { partner, holds, checkedMs } of balances)
    if (holds === false)
      alarms.push({
        tone: 'bad',
        text: `The balance of ${partner} does not hold: the journal is damaged.`,
        sinceMs: checkedMs,
        remedy: 'markbridge journal ls says what does not add up; compare the journal with a backup.',
        href: undefined,
      })
  for (const stage of stages) alarms.push(...alarmsOfStage(stage))
  for (const { instance, host, state, leaseUntilMs } of instances) {
    if (state === 'live') continue
    const end = state === 'lost' ? 'was lost' : 'does not renew its lease'
    const remedy = `See whether it runs and reaches the journal. Where it is off for good: markbridge rollout dismiss ${instance} --reason "it is off".`
    alarms.push({ tone: 'bad', text: `Instance ${instance} on ${host} ${end}.`, sinceMs: leaseUntilMs, remedy, href: undefined }) // prettier-ignore
  }
  if (index.lostSteps > 0)
    alarms.push({
      tone: 'note',
      text: `${counted(index.lostSteps, 'step')} of timelines could not be kept.`,
      sinceMs: undefined,
      remedy: 'Nothing: the records are whole, and only their timelines have gaps.',
      href: undefined,
    })
  return alarms.toSorted((one, other) => one.tone.localeCompare(other.tone))
}

function alarmsOfStage({ partner, stage, by, reason, sinceMs, pending, guardAlarm }: PartnerStage): readonly Alarm[] {
  const href = `/partners/${encodeURIComponent(partner)}`
  const alarms: Alarm[] = []
  const add = (tone: Alarm['tone'], text: string, since: number | undefined, remedy: string): void => {
    alarms.push({ tone, text, sinceMs: since, remedy, href })
  }
  if (stage === 'damaged')
    add('bad', `The stage of ${partner} in the journal is damaged.`, undefined, `markbridge rollout back ${partner} replaces it.`)
  if (by === GUARD_NAME)
    add('bad', `A guard took ${partner} back to ${stage}. ${reason ?? ''}`, sinceMs, 'Look for the cause in V3 before the next step forward.')
  else if (guardAlarm !== undefined)
    add('bad', `V3 does worse than V2 for ${partner}: ${guardAlarm}`, undefined, `markbridge rollout back ${partner} takes it off V3.`)
  if (pending?.needsApproval === true)
    add('note', `${partner}: a step by ${pending.by} waits for an approval.`, undefined, 'Approve it, or take the partner back.')
  return alarms
} // prettier-ignore
