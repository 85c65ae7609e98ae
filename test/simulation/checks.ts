import type { PartReply } from '../../src/v2/index.ts'
import type { SimulatedService } from './simulated-service.ts'
import type { SimulatedDatabase } from './simulated-store.ts'
import type { Actor, World } from './world.ts'

/** A promise of the adapter that did not hold. */
export interface Finding {
  readonly kind:
    | 'lost' | 'doubled' | 'false' | 'order' | 'changed' | 'lent' | 'ledger' | 'unsettled' | 'leftover' | 'crash' // prettier-ignore
  readonly of: string
  readonly because: string
}

/** A record as its client knows it. */
export interface SentRecord {
  readonly name: string
  readonly key: string
  readonly position: number
  readonly batch: SentBatch
  /** The final answer, as the client read it first. */
  final: PartReply | undefined
}

export interface SentBatch {
  readonly number: number
  readonly client: SimulatedClient
  readonly request: { readonly contentType: string; readonly body: Buffer }
  readonly records: SentRecord[]
  /** The adapters that work on a request with it, one for each request. */
  atWork: Actor[]
  sends: number
  lastSentMs: number
  /** The numbers that the journal gave it. */
  readonly begun: number[]
  /** Its client has given it up. */
  isAbandoned: boolean
  /** It was sent with a wrong token at least once. */
  wasDenied: boolean
}

export interface SimulatedClient {
  readonly name: string
  readonly tokens: string[]
  isDone: boolean
}

/** What the adapter promises, held against what the service has and the journal says. */
export class Checks {
  readonly findings: Finding[] = []
  readonly records: SentRecord[] = []
  readonly batches: SentBatch[] = []
  /** The batches by what the journal knows their content by, in hexadecimal. */
  readonly batchOfContent = new Map<string, SentBatch>()
  database: SimulatedDatabase | undefined
  private readonly world: World
  private readonly outside: Actor
  private readonly service: SimulatedService

  constructor(world: World, outside: Actor, service: SimulatedService) {
    this.world = world
    this.outside = outside
    this.service = service
  }

  find(kind: Finding['kind'], of: string, because: string): void {
    this.world.tell(() => `FINDING ${kind} of ${of}: ${because}`)
    this.findings.push({ kind, of, because })
  }

  /**
   * A mark stands there that the journal does not know as confirmed, of another program or of a record whose outcome is unknown: then
   * only times may tell, and they may not.
   */
  private isAmbiguous(key: string): boolean {
    const confirmed = this.confirmedNames()
    return this.service.effects.some((effect) => effect.key === key && !confirmed.has(effect.name))
  }

  private confirmedNames(): ReadonlySet<string> {
    const rows =
      this.database?.all<{ batch: number; position: number }>(
        'select batch, position from journal_records where state = 1',
      ) ?? []
    return new Set(
      rows.flatMap(({ batch, position }) => {
        const record = this.batches.find(({ begun }) => begun.includes(batch))?.records[position]
        return record === undefined ? [] : [record.name]
      }),
    )
  }

  private effectsOf({ name }: SentRecord): SimulatedService['effects'] {
    return this.service.effects.filter((effect) => effect.name === name)
  }

  /** What the adapter says at this moment must be true at this moment. */
  checkTold(record: SentRecord, part: PartReply): void {
    if (part.status === 201 && this.effectsOf(record).length === 0)
      this.find('lost', record.name, 'told created, and the service has no such mark')
  }

  /** "Not applied" holds as long as its client does not send it again. */
  checkNotApplied(record: SentRecord, part: PartReply): void {
    if (part.status !== 503) return
    const { batch } = record
    if (batch.atWork.length > 0) return
    const before = this.effectsOf(record).length
    if (before > 0) this.find('false', record.name, 'told not applied, and the service has it')
    const { sends } = batch
    this.world.at(this.outside, 5_000, () => {
      if (batch.sends === sends && this.effectsOf(record).length > before)
        this.find('false', record.name, 'told not applied, and it was applied later')
    })
  }

  checkAnswer(record: SentRecord, part: PartReply): void {
    if (!isFinal(part)) return
    if (record.final === undefined) record.final = part
    else if (record.final.status !== part.status || record.final.json !== part.json)
      this.find(
        'changed',
        record.name,
        `told ${record.final.status} and then ${part.status}: ${record.final.json ?? ''} ${part.json ?? ''}`,
      )
  }

  openRecords(): readonly {
    readonly batch: number
    readonly position: number
    readonly state: number
    readonly reason: string | null
  }[] {
    return (
      this.database?.all(
        'select batch, position, state, reason from journal_records where active = 1 and superseded = 0 and state <> 2',
      ) ?? []
    )
  }

  checkEnd(): void {
    const { service, records } = this
    for (const record of records) {
      const effects = this.effectsOf(record)
      if (effects.length > 1) this.find('doubled', record.name, `applied ${effects.length} times`)
      const { final } = record
      if (final !== undefined && final.status >= 400 && final.status !== 409 && effects.length > 0)
        this.find('false', record.name, `told ${final.status}, and it was applied`)
      if (final !== undefined && codeOf(final) === 'ADP_SUPERSEDED' && effects.length > 0)
        this.find('false', record.name, 'told superseded and not applied, and it was applied')
      if (final === undefined && !record.batch.isAbandoned && !this.isAmbiguous(record.key))
        this.find('unsettled', record.name, 'its client has no final answer')
    }
    for (const { name, token } of service.effects) {
      const owner = /c\d+$/.exec(name)?.[0]
      const record = records.find((one) => one.name === name)
      if (record !== undefined && !record.batch.client.tokens.includes(token))
        this.find('lent', name, `sent with a token of another client than ${owner ?? ''}`)
    }
    this.checkOrder()
    // What came with credentials that the service denies waits for better ones for a day.
    const open = this.openRecords().filter(({ batch, position }) => {
      const sent = this.batches.find(({ begun }) => begun.includes(batch))
      const record = sent?.records[position]
      return (
        !(sent?.isAbandoned === true && sent.wasDenied) &&
        (record === undefined || !this.isAmbiguous(record.key))
      )
    })
    if (open.length > 0) this.find('unsettled', 'journal', JSON.stringify(open))
    const [ledger] = this.database?.all<Record<string, number>>('select * from journal_ledger') ?? []
    if (ledger !== undefined) {
      const states =
        this.database?.all<{ state: number; count: number }>(
          'select state, count(*) as count from journal_records group by state',
        ) ?? []
      const total = states.reduce((sum, { count }) => sum + count, 0)
      const { open: o = 0, confirmed = 0, refused = 0, unknown = 0, parked = 0 } = ledger
      if (
        o < 0 ||
        confirmed < 0 ||
        refused < 0 ||
        unknown < 0 ||
        parked < 0 ||
        o !== this.openRecords().filter(({ state }) => state === 0).length
      )
        this.find('ledger', 'journal', JSON.stringify(ledger))
      if (o + confirmed + refused + unknown + parked < total)
        this.find('ledger', 'journal', `${JSON.stringify(ledger)} of ${total} records`)
    }
  }

  /** Marks of one key are applied in the order in which the journal received them. */
  private checkOrder(): void {
    const rows =
      this.database?.all<{ id: number; content: string }>('select id, content from journal_batches') ?? []
    for (const { id, content } of rows) {
      const batch = this.batchOfContent.get(content)
      if (batch !== undefined && !batch.begun.includes(id)) batch.begun.push(id)
    }
    const latest = new Map<string, { readonly name: string; readonly place: number }>()
    for (const { key, name } of this.service.effects) {
      const record = this.records.find((one) => one.name === name)
      if (record === undefined) continue
      const place = Math.max(-1, ...record.batch.begun) * 1_000 + record.position
      const before = latest.get(key)
      if (before !== undefined && before.place > place)
        this.find('order', name, `applied after the newer ${before.name}`)
      if (before === undefined || place > before.place) latest.set(key, { name, place })
    }
  }
}

/** A final answer: sending the batch again would change nothing. */
function isFinal(part: PartReply): boolean {
  const { status } = part
  return (
    status === 201 || (status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 429)
  )
}

export function codeOf({ json }: PartReply): string {
  return /"ErrorCode":"([^"]*)"/.exec(json ?? '')?.[1] ?? ''
}
