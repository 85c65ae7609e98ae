import { journalKeysOf, parseConfig } from '../../../src/config/index.ts'
import { openJournal, type Settled } from '../../../src/journal/index.ts'
import { type BatchText, flatRecord, guid } from '../../support/batch-request.ts'
import { clientHeaders } from '../../support/start-adapter.ts'
import type { JournalSection } from './journal-file.ts'

const keyOf = (learner: number): string => {
  const { Learner, AttendableEvent } = flatRecord(learner) as { Learner: string; AttendableEvent: string }
  return `${Learner} ${AttendableEvent}`.toLowerCase()
}
/** Builds the payload of a batch as the journal stores it. `sender` is the hash of the credentials of the request. */
export const payloadOf = ({ headers, body }: BatchText, sender?: string): Buffer => {
  const request = {
    kind: 'batch',
    contentType: headers['Content-Type'],
    serviceHosts: ['127.0.0.1'],
    context: 'http://127.0.0.1/$metadata',
    layout: 'flat',
    dataEnvelope: false,
    msgtypeResponse: false,
    prefer: '',
    accept: '',
  } as const
  return Buffer.from(`${JSON.stringify({ request, replyId: guid(1), sender })}\n${body}`)
}

/** The state that an instance leaves in its journal. */
export interface Left {
  readonly partner?: string
  readonly owner?: string
  readonly payload: Buffer
  readonly learners: readonly number[]
  readonly settled?: readonly Settled[]
  /** How often a later instance took the batch over, stored unknown outcomes, reopened the records and died. The default is 0. */
  readonly crashes?: number
}

/** Creates a journal as it is after an instance has died while it sent a batch. */
export async function leave(
  section: JournalSection,
  { partner = 'default', owner = 'the client that died', payload, learners, settled = [], crashes = 0 }: Left,
): Promise<void> {
  const { journal: config } = parseConfig({
    upstreams: { v3: { baseUrl: 'http://v3.test' } },
    journal: section,
  })
  const open = () => openJournal({ url: section.url, keys: journalKeysOf(config) })
  const journal = await open()
  const { Authorization: authorization, 'Ocp-Apim-Subscription-Key': subscriptionKey } = clientHeaders
  const begun = await journal.begin({
    partner,
    owner,
    ids: undefined,
    content: Buffer.alloc(32),
    receivedMs: Date.now(),
    payload,
    credentials: JSON.stringify({ authorization, subscriptionKey }),
    records: learners.map((learner) => ({ key: keyOf(learner) })),
  })
  await journal.settle(begun.batch, settled)
  await journal.close()
  const positions = [...learners.keys()]
  const lost = { state: 'unknown', answer: undefined, reason: 'timeout', retry: 1 } as const
  for (let crash = 0; crash < crashes; crash += 1) {
    const next = await open()
    await next.takeOver()
    await next.settle(
      begun.batch,
      positions.map((position) => ({ position, ...lost })),
    )
    await next.reopen(begun.batch, positions, undefined)
    await next.close()
  }
}
