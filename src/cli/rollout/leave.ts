import { ownerOfClient } from '../../app/partners.ts'
import { AdapterError } from '../../errors.ts'
import type { V2Client } from '../../journal/index.ts'
import { readKeySource } from '../files.ts'
import type { Target } from '../options.ts'
import { loadTarget } from '../target.ts'
import { type Answer, formatTable, formatTime } from '../text.ts'
import { readStore } from './open-store.ts'
import { viewKnown } from './stage-view.ts'

interface LeaveOptions extends Target {
  /** The source of a client's key (`env:NAME` or `file:path`). The key and the token identify the client in the list. */
  readonly subscriptionKey?: string
  readonly token?: string
}

const DAY_MS = 86_400_000
/** The number of characters of a client's hash that the table shows. The JSON document has the whole hash. */
const SHOWN = 12

/** Lists the clients of a partner whose V2 writes are in the journal. Each has the side that served its latest write. */
export async function listClients(partner: string, options: LeaveOptions): Promise<Answer> {
  const config = await loadTarget(options)
  const [view, found] = await readStore(config, async (store) => [
    viewKnown(partner, config, await store.snapshot()),
    await store.clients(partner),
  ])
  const { stage } = view.setting
  const clients = found.map(describeClient)
  const client = await ownerOfGiven(view.file?.own, options)
  const keptDays = Math.floor(config.journal.keepRecordsMs / DAY_MS)
  return {
    document: { partner, stage, keptForMs: config.journal.keepRecordsMs, clients, client: client ?? null },
    text: () =>
      [
        `${partner}: ${stage}`,
        clients.length === 0
          ? 'The journal has no write of a V2 client.'
          : formatTable(clients, [
              ['client', (one) => one.client.slice(0, SHOWN)],
              ['requests', ({ requests }) => requests],
              ['first', ({ first }) => first],
              ['last', ({ last }) => last],
              ['last served by', ({ lastServedBy }) => lastServedBy],
            ]),
        `Writes are stored for ${keptDays} days (journal.keepRecordsMs). Reads are not stored, and neither are writes at legacy. The metrics count them.`,
        ...(client === undefined ? [] : [`The credentials belong to the client ${client.slice(0, SHOWN)}.`]),
      ].join('\n'),
  }
}

function describeClient({ owner, requests, firstMs, lastMs, lastOnV2Ms }: V2Client) {
  return {
    client: owner,
    requests,
    first: formatTime(firstMs),
    last: formatTime(lastMs),
    lastServedBy: lastOnV2Ms === lastMs ? 'V2' : 'V3',
  }
}

async function ownerOfGiven(
  own: Parameters<typeof ownerOfClient>[0] | undefined,
  { subscriptionKey, token }: LeaveOptions,
): Promise<string | undefined> {
  if (subscriptionKey === undefined && token === undefined) return undefined
  if (subscriptionKey === undefined || token === undefined || own === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      'A client is found by its key, its token and the configuration of its partner. Nothing was read. Give --subscription-key, --token and --config.',
    )
  return ownerOfClient(own, {
    subscriptionKey: await readKeySource(subscriptionKey, '--subscription-key'),
    authorization: `Bearer ${await readKeySource(token, '--token')}`,
  })
}
