import type { BeginResult } from '../../src/journal/index.ts'
import { stateColumns } from '../../src/journal/lifecycle.ts'
import type { PartReply } from '../../src/v2/index.ts'
import type { StageSetting } from '../../src/rollout/stage.ts'
import type { Finding, Send, SentBatch, SentRecord } from './sent.ts'
import { processName } from './fleet.ts'
import { isAllOnV3 } from './operator.ts'
import type { ServiceRequest } from './simulated-network.ts'
import { type Effect, SEND_FIELD, type SimulatedService } from './simulated-service.ts'
import type { SimulatedDatabase } from './simulated-database.ts'
import type { Actor, World } from './world.ts'

interface ChecksOptions {
  /** The time for which a batch that V2 received unrecorded may be resent to V3. */
  readonly resendWindowMs: number
  /** Returns the lease that a process holds, or `undefined` if it holds none. */
  readonly leaseOf: (actor: Actor) => number | undefined
  /** True if no clock is set and the service stores times unchanged. */
  readonly areClocksSound: boolean
  /** True if the service does not cut comments or its replies show where, and its clock is never set. */
  readonly areValuesShown: boolean
  /** True if replies show the same times as reads, or the service keeps its clock and its rules. */
  readonly areTimesShown: boolean
  /** True if the journal stores credentials, so that a restarted process has them. */
  readonly keepsCredentials: boolean
  /** True if the journal always answers in time, so that V2's final reply is always found in it. */
  readonly isReplySure: boolean
}

/** Compares the promises of the adapter with the state of the service and of the journal. */
export class Checks {
  readonly findings: Finding[] = []
  readonly records: SentRecord[] = []
  readonly batches: SentBatch[] = []
  readonly sends: Send[] = []
  /** The batches by the hash of their content in the journal, in hexadecimal. */
  readonly batchOfContent = new Map<string, SentBatch>()
  /** The names of processes that ended. */
  private readonly gone = new Set<string>()
  /** The records that were ambiguous at the last search for records without an answer. */
  private ambiguous: ReadonlySet<SentRecord> = new Set()
  private readonly database: SimulatedDatabase
  private readonly world: World
  private readonly outside: Actor
  private readonly service: SimulatedService
  private readonly options: ChecksOptions

  constructor(
    world: World,
    outside: Actor,
    service: SimulatedService,
    database: SimulatedDatabase,
    options: ChecksOptions,
  ) {
    this.database = database
    this.world = world
    this.outside = outside
    this.service = service
    this.options = options
    service.onRelayed = (number) => this.relayed(number)
  }

  find(kind: Finding['kind'], of: string, because: string): void {
    this.world.tell(() => `FINDING ${kind} of ${of}: ${because}`)
    this.findings.push({ kind, of, because })
  }

  crash(of: string, cause: unknown): void {
    this.find('crash', of, cause instanceof Error ? (cause.stack ?? cause.message) : String(cause))
  }

  /** Records that a process ended, together with all requests that it worked on. */
  died(actor: Actor): void {
    this.gone.add(actor.name)
    for (const batch of this.batches) batch.atWork = batch.atWork.filter((one) => one !== actor)
  }

  /** Returns true if no adapter works on a request. */
  isIdle(): boolean {
    return this.batches.every(({ atWork }) => atWork.length === 0)
  }

  /**
   * Says of which records others have left a mark that the journal does not know as confirmed: another program, or a record
   * that V2 served and whose outcome or key is not known. Then only times may tell, and they may not. Or a newer record waits for credentials.
   */
  private findAmbiguous(): (record: Pick<SentRecord, 'key' | 'name'>) => boolean {
    const confirmed = this.confirmedNames()
    const unknown = this.service.effects.filter(
      ({ name, send }) =>
        !confirmed.has(`${send ?? 'V3'} ${name}`) &&
        (send !== undefined || this.records.every((record) => record.name !== name)),
    )
    // An older record is not posted behind a newer one that may have been applied.
    const waiting = new Set(
      this.openRecords().flatMap(({ batch, position }) => {
        const sent = this.batchOf(batch)
        const record = sent?.records[position]
        return sent !== undefined && record !== undefined && this.isAlone(sent) ? [record.key] : []
      }),
    )
    // Its own mark is no excuse.
    return ({ key, name }) =>
      waiting.has(key) || unknown.some((effect) => effect.key === key && effect.name !== name)
  }

  /** Returns the confirmed records of the journal with their keys, each prefixed with the request that V2 received, or with `V3`. */
  private confirmedNames(): ReadonlySet<string> {
    const rows = this.database.all<{ batch: number; position: number; isOnV2: number }>(
      'select batch, position, on_v2 as isOnV2 from journal_records join journal_batches on id = batch where state = 1',
    )
    return new Set(
      rows.flatMap(({ batch, position, isOnV2 }) => {
        const send = isOnV2 === 1 ? this.sends.find(({ begun }) => begun === batch) : undefined
        if (isOnV2 === 1 && send?.entry?.known !== 'keys') return []
        const sent = send?.batch ?? this.batches.find(({ begun }) => begun.includes(batch))
        const record = sent?.records[position]
        return record === undefined ? [] : [`${send?.number ?? 'V3'} ${record.name}`]
      }),
    )
  }

  private effectsOf({ name }: SentRecord): SimulatedService['effects'] {
    return this.service.effects.filter((effect) => effect.name === name)
  }

  private knownEffectsOf(record: SentRecord): SimulatedService['effects'] {
    return this.effectsOf(record).filter((effect) => !this.isUnknownTo(effect))
  }

  /** Records that a request with a batch arrived at an adapter. */
  sent(batch: SentBatch, token: string, instance: Actor): Send {
    for (const check of batch.untilSent) check()
    const send: Send = {
      ...{ number: this.sends.length, batch, token, instance, begun: undefined, entry: undefined },
      isUnrecorded: false,
      wasAnswered:
        this.options.isReplySure && !this.isRefusedAnew(batch) && this.hasReplyOfV2(batch, token, instance),
      ...{ relayed: 0, isOver: false, clockSteps: instance.clockSteps },
    }
    this.sends.push(send)
    return send
  }

  /** V2 refused all of it, and another adapter, which cannot know this token, sends it to V2 once more at this moment. */
  private isRefusedAnew({ atWork, records }: SentBatch): boolean {
    return atWork.length > 1 && records.every(({ final }) => final !== undefined && final.status >= 400)
  }

  /** Records that the journal begins a batch for this request. */
  begun(send: Send, content: Uint8Array, result: BeginResult | undefined): void {
    const { batch } = send
    if (result === undefined) {
      const hex = Buffer.from(content).toString('hex')
      if (!this.batchOfContent.has(hex)) this.batchOfContent.set(hex, batch)
      return
    }
    if (result.kind === 'new') send.begun = result.batch
    if (!batch.begun.includes(result.batch)) batch.begun.push(result.batch)
  }

  /**
   * Returns true if V2's last reply is in the journal and final, and this adapter may return it for this token without asking V2 for a
   * mark.
   */
  private hasReplyOfV2(batch: SentBatch, token: string, instance: Actor): boolean {
    if (batch.records.some(({ final }) => final === undefined)) return false
    const last = this.sends.findLast((send) => send.batch === batch && send.relayed > 0)
    if (last?.begun === undefined || last.token !== token || last.instance !== instance) return false
    // A jump of the clock ends the knowledge about a token.
    if (last.clockSteps !== instance.clockSteps) return false
    const rows = this.stateOf(last.begun)
    return (
      rows.length > 0 && rows.every(({ state, reason }) => state === 1 || (state === 2 && reason === 'part'))
    )
  }

  private stateOf(batch: number): readonly { readonly state: number; readonly reason: string | null }[] {
    return this.database.all('select state, reason from journal_records where batch = $1', batch)
  }

  /** Checks that a process posts records only under a lease, and while no other process has their batch. */
  readonly leavesToV3 = ({ method, body }: ServiceRequest, actor: Actor): void => {
    if (method !== 'POST') return
    const process = actor.name
    if (this.options.leaseOf(actor) === undefined) this.find('false', process, 'posts without a lease')
    for (const [, name] of body.matchAll(/"Comment":"(\w+)/g)) {
      const record = this.records.find((one) => one.name === name)
      if (record === undefined) continue
      const owners = this.ownersOf(record)
      if (owners.length > 0 && !owners.includes(process))
        this.find('false', record.name, `${process} posts it, and ${owners.join(' and ')} has it`)
    }
  }

  /** Returns the living processes with a lease that have this record open for V3. */
  private ownersOf({ batch, position }: SentRecord): readonly string[] {
    if (batch.begun.length === 0) return []
    return this.database
      .all<{ pid: number; started: string }>(
        `select pid, started from journal_records r join journal_batches b on b.id = batch join journal_instances i on i.id = instance
         where batch in (select value from json_each($1)) and position = $2 and r.state = 0 and on_v2 = 0 and lost = 0`,
        JSON.stringify(batch.begun),
        position,
      )
      .map(({ pid, started }) => processName(pid, started))
      .filter((name) => !this.gone.has(name))
  }

  /** V2 is sent nothing once V3 serves all units, and what the journal knows only under a lease, and while that is open. */
  readonly leavesToV2 = ({ method, headers }: ServiceRequest, actor: Actor): void => {
    const send = this.sends[Number(headers[SEND_FIELD])]
    if (method !== 'POST' || send === undefined) return
    if (this.isAllOnV3())
      this.find('false', `batch ${send.batch.number}`, 'V2 is sent it, and V3 serves everything')
    if (send.begun === undefined || send.isUnrecorded) return
    if (this.options.leaseOf(actor) === undefined)
      this.find('false', `batch ${send.batch.number}`, `${actor.name} sends V2 it without a lease`)
    const rows = this.stateOf(send.begun)
    if (rows.length > 0 && rows.every(({ state }) => state !== 0))
      this.find('false', `batch ${send.batch.number}`, 'V2 is sent it after another instance has ended it')
  }

  /** Returns the current stage in the store. */
  private isAllOnV3(): boolean {
    if (this.database.isChanging) return false
    const [row] = this.database.all<{ content: string }>('select content from rollout_stages')
    return row !== undefined && isAllOnV3((JSON.parse(row.content) as { state: StageSetting }).state)
  }

  /** V2 is sent a batch; it does not know it again, and its reply is another one each time. */
  private relayed(number: number): void {
    const send = this.sends[number]
    if (send === undefined) return
    const { batch, entry, wasAnswered, isUnrecorded } = send
    send.relayed += 1
    this.world.tell(() => `V2: gets ${batch.client.name} batch ${batch.number}`)
    for (const record of batch.records) record.changes += 1
    if (send.relayed > 1) this.find('doubled', `batch ${batch.number}`, 'V2 was sent one request twice')
    if (wasAnswered && !isUnrecorded && entry?.stage !== 'legacy')
      this.find(
        'doubled',
        `batch ${batch.number}`,
        'V2 was sent it again, and the journal had its final reply',
      )
  }

  /** V2 was sent this without the journal's knowledge: what it does then, it does without an adapter too. */
  private isUnknownTo({ send }: Effect): boolean {
    const of = send === undefined ? undefined : this.sends[send]
    return of !== undefined && this.isUnknown(of)
  }

  /** Its instance had lost its lease when V2 replied. */
  private isReplyLost({ begun }: Send): boolean {
    return begun !== undefined && this.stateOf(begun).some(({ state }) => state === 3)
  }

  private isUnknown({ isUnrecorded, entry }: Send): boolean {
    return isUnrecorded || entry?.known === 'nothing'
  }

  /** Returns true for a record that was applied again without another record of its key in between. */
  isDoubledInARow(name: string): boolean {
    const { key } = this.records.find((one) => one.name === name) ?? {}
    const names = this.service.effects.filter((effect) => effect.key === key).map((effect) => effect.name)
    return names.some((one, index) => one === name && names[index + 1] === name)
  }

  /** A step forward that leaves nothing to V2 was made. */
  readonly wentForward = (): void => {
    for (const { batch, entry, instance, isOver } of this.sends)
      if (entry?.side === 'v2' && !isOver && !instance.isDead && this.options.leaseOf(instance) !== undefined)
        this.find('false', `batch ${batch.number}`, 'V3 serves everything, and V2 is still sent it')
  }

  /** What the adapter says at this moment must be true at this moment. */
  checkTold(record: SentRecord, part: PartReply): void {
    if (part.status === 201 && this.effectsOf(record).length === 0)
      this.find('lost', record.name, 'told created, and the service has no such mark')
  }

  /** Checks that "not applied" holds until the client resends the record. */
  checkNotApplied(record: SentRecord, part: PartReply): void {
    if (part.status !== 503) return
    const { batch } = record
    const before = this.knownEffectsOf(record).length
    if (before > 0) this.find('false', record.name, 'told not applied, and the service has it')
    const check = (): void => {
      batch.untilSent.delete(check)
      if (this.knownEffectsOf(record).length > before)
        this.find('false', record.name, 'told not applied, and it was applied later')
    }
    batch.untilSent.add(check)
    this.world.at(this.outside, 10_000, () => {
      if (batch.untilSent.has(check)) check()
    })
  }

  /** Of a batch that was refused as a whole when it came first, nothing is kept that would be sent later. */
  checkNotKept(batch: SentBatch, sends = batch.sends): void {
    // What comes of it once it is sent again is another matter.
    if (batch.sends > sends) return
    // The transaction may still be rolled back.
    if (this.database.isChanging) {
      this.world.at(this.outside, 1, () => this.checkNotKept(batch, sends))
      return
    }
    const [content] = [...this.batchOfContent].find(([, one]) => one === batch) ?? []
    const open = this.database.all(
      'select 1 from journal_records join journal_batches on id = batch where content = $1 and state = 0 and on_v2 = 0',
      content ?? '',
    )
    if (open.length > 0)
      this.find('false', `batch ${batch.number}`, 'told not applied, and the journal keeps it')
  }

  checkAnswer(record: SentRecord, part: PartReply): void {
    if (!isFinal(part)) return
    const { final, batch } = record
    if (final?.status === part.status && final.json === part.json) return
    const isAnew = record.changes > 0
    if (isAnew) record.changes -= 1
    // The journal has another reply than that which V2 gave last, or none.
    const isUnknown = this.sends.some(
      (send) =>
        send.batch === batch &&
        send.relayed > 0 &&
        (this.isUnknown(send) || send.entry?.stage === 'legacy' || this.isReplyLost(send)),
    )
    if (final === undefined || isAnew || isUnknown) record.final = part
    else
      this.find(
        'changed',
        record.name,
        `told ${final.status} and then ${part.status}: ${final.json ?? ''} ${part.json ?? ''}`,
      )
  }

  openRecords(): readonly {
    readonly batch: number
    readonly position: number
    readonly state: number
    readonly reason: string | null
    readonly isOnV2: number
  }[] {
    return this.database.all(
      'select batch, position, state, reason, on_v2 as isOnV2 from journal_records join journal_batches on id = batch where journal_records.active = 1 and superseded = 0 and state not in (2, 5)',
    )
  }

  /** Returns the records that were sent and whose clients must still get a final answer. */
  unanswered(): readonly SentRecord[] {
    const open = this.records.filter(
      ({ final, batch }) =>
        final === undefined &&
        batch.sends > 0 &&
        !batch.isAbandoned &&
        !batch.isHidden &&
        !this.mayStayUnknown(batch),
    )
    const isAmbiguous = open.length === 0 ? () => false : this.findAmbiguous()
    this.ambiguous = new Set(open.filter(isAmbiguous))
    return open.filter((record) => !this.ambiguous.has(record))
  }

  /**
   * V2 may have edited a known mark in the moment in which it was sent this batch, and times do not tell; or a mark may be this one, cut to a
   * length that no reply has shown, or an older one (docs/decisions/012).
   */
  private mayStayUnknown(batch: SentBatch): boolean {
    const { areClocksSound, areValuesShown, areTimesShown } = this.options
    const wasOnV2 = this.sends.some((send) => send.batch === batch && send.entry?.side === 'v2')
    return !areValuesShown || !areTimesShown || (!areClocksSound && wasOnV2)
  }

  /** Returns the rows that the journal must still settle. */
  unsettledRows(): ReturnType<Checks['openRecords']> {
    const open = this.openRecords()
    if (open.length === 0) return open
    const isAmbiguous = this.findAmbiguous()
    return open.filter(({ batch, position, state, isOnV2 }) => {
      // What became of it on V2 stays unknown until its client sends it again.
      if (isOnV2 === 1) return state === 0
      const sent = this.batchOf(batch)
      const record = sent?.records[position]
      if (sent === undefined || record === undefined) return true
      return !this.isAlone(sent) && !isAmbiguous(record) && !this.mayStayUnknown(sent)
    })
  }

  private batchOf(number: number): SentBatch | undefined {
    return this.batches.find(({ begun }) => begun.includes(number))
  }

  /** What came with credentials that the service denies, or never judged, waits for better ones for a day where its client does not come. */
  private isAlone(sent: SentBatch): boolean {
    if (!sent.isAbandoned && !sent.isHidden) return false
    const isAccepted = this.isAccepted(sent)
    const { keepsCredentials } = this.options
    if (sent.request.kind === 'record' && !(isAccepted && keepsCredentials)) return true
    return sent.wasDenied || !(isAccepted || keepsCredentials)
  }

  /** The service has accepted a record of its client, by whose credentials others are finished: on each instance, where the journal keeps them. */
  private isAccepted({ client, records }: SentBatch): boolean {
    const accepted = this.records.filter(
      ({ batch, final }) => batch.client === client && final?.status === 201,
    )
    if (this.options.keepsCredentials) return accepted.length > 0
    // Else only the instance that has seen them can finish its batches.
    const holders = new Set(records.flatMap((record) => this.ownersOf(record)))
    const batches = new Set(accepted.map(({ batch }) => batch))
    return this.sends.some(({ batch, instance }) => batches.has(batch) && holders.has(instance.name))
  }

  checkEnd(): void {
    const { service, records } = this
    for (const record of records) {
      const all = this.effectsOf(record)
      const onV3 = all.filter(({ send }) => send === undefined)
      if (onV3.length > 1) this.find('doubled', record.name, `applied ${onV3.length} times`)
      this.checkBothSides(record, all)
      const effects = this.knownEffectsOf(record)
      const { final } = record
      if (final !== undefined && final.status >= 400 && final.status !== 409 && effects.length > 0)
        this.find('false', record.name, `told ${final.status}, and it was applied`)
      if (final !== undefined && codeOf(final) === 'ADP_SUPERSEDED' && effects.length > 0)
        this.find('false', record.name, 'told superseded and not applied, and it was applied')
    }
    // The client would resend the batch now.
    const { ambiguous } = this
    for (const record of this.unanswered())
      if (!ambiguous.has(record)) this.find('unsettled', record.name, 'its client has no final answer')
    for (const { name, token } of service.effects) {
      const owner = /c\d+$/.exec(name)?.[0]
      const record = records.find((one) => one.name === name)
      if (record !== undefined && !record.batch.client.tokens.includes(token))
        this.find('lent', name, `sent with a token of another client than ${owner ?? ''}`)
    }
    this.checkOrder()
    const open = this.unsettledRows()
    if (open.length > 0) this.find('unsettled', 'journal', JSON.stringify(open))
    this.checkConfirmed()
    this.checkLedger()
  }

  /** Checks that marks that the journal records as written on V3 exist, even if the client was told nothing about them. */
  private checkConfirmed(): void {
    const rows = this.database.all<{ content: string; position: number }>(
      'select content, position from journal_records join journal_batches on id = batch where state = 1 and on_v2 = 0',
    )
    for (const { content, position } of rows) {
      const record = this.batchOfContent.get(content)?.records[position]
      if (record !== undefined && this.effectsOf(record).length === 0)
        this.find('lost', record.name, 'confirmed, and the service has no such mark')
    }
  }

  private checkLedger(): void {
    const [ledger] = this.database.all<Record<string, number>>('select * from journal_ledger')
    if (ledger === undefined) return
    const [rows] = this.database.all<{ total: number; opened: number }>(
      'select count(*) as total, total(state = 0) as opened from journal_records',
    )
    const { total = 0, opened = 0 } = rows ?? {}
    const states = Object.values(stateColumns).map((column) => ledger[column] ?? 0)
    const sum = states.reduce((one, other) => one + other, 0)
    if (ledger.open !== opened || sum < total || states.some((count) => count < 0))
      this.find('ledger', 'journal', `${JSON.stringify(ledger)} of ${total} records, ${opened} open`)
  }

  /** A day after the end nothing waits any longer for a client who sends its batch again. */
  checkExpired(): void {
    const [left] = this.database.all<{ count: number }>(
      'select count(*) as count from journal_records where active = 1 and state <> 0 and retry < 0',
    )
    if (left?.count !== 0)
      this.find('leftover', 'journal', `${left?.count ?? 0} records wait for their clients`)
    this.checkLedger()
  }

  /** What one side has applied, the other one is never sent; of what the journal does not know only V3 for a while. */
  private checkBothSides({ name }: SentRecord, effects: readonly Effect[]): void {
    const posted = effects.find(({ send }) => send === undefined)
    if (posted === undefined) return
    for (const effect of effects) {
      if (effect.send === undefined) continue
      const isEarly = posted.atMs > effect.atMs && posted.atMs - effect.atMs < this.options.resendWindowMs
      if (this.isUnknownTo(effect) && !isEarly) continue
      if (this.isHidden(effect, posted)) continue
      this.find('doubled', name, `applied by both sides, by V2 at ${effect.atMs} and by V3 at ${posted.atMs}`)
    }
  }

  /**
   * Between the two V2 has applied an older record, which it was sent at once with the first: its mark stands, so the newer one is posted. Or one
   * whose key the journal does not keep, and clocks were changed: only times could tell it from an older one (docs/decisions/012).
   */
  private isHidden(from: Effect, to: Effect): boolean {
    const sendOf = ({ send }: Effect): Send | undefined => (send === undefined ? undefined : this.sends[send])
    const between = this.service.effects
      .filter(({ key, atMs }) => key === from.key && (atMs - from.atMs) * (atMs - to.atMs) < 0)
      .flatMap((effect) => sendOf(effect) ?? [])
    const { begun: own = 0 } = sendOf(from) ?? {}
    if (between.some(({ begun = own }) => begun < own)) return true
    return !this.options.areClocksSound && between.some(({ entry }) => entry?.known !== 'keys')
  }

  /** Checks that marks of one key are applied in the order in which the journal received them. */
  private checkOrder(): void {
    // If V3 takes the place of V2, marks that V2 may have applied count from that moment.
    const rows = this.database.all<{ id: number; content: string; isOnV2: number; isApplied: number }>(
      'select id, content, on_v2 as isOnV2, exists (select 1 from journal_records where batch = id and state in (1, 3)) as isApplied from journal_batches order by id',
    )
    const onV3 = new Map<SentBatch, number>()
    const onV2 = new Map<SentBatch, number>()
    for (const { id, content, isOnV2, isApplied } of rows) {
      const batch = this.batchOfContent.get(content)
      if (batch === undefined) continue
      if (!batch.begun.includes(id)) batch.begun.push(id)
      if (isOnV2 === 0) onV3.set(batch, onV2.get(batch) ?? id)
      else if (isApplied === 1 && !onV2.has(batch)) onV2.set(batch, id)
    }
    const latest = new Map<
      string,
      { readonly name: string; readonly place: number; readonly isOnV2: boolean }
    >()
    for (const effect of this.service.effects) {
      const { key, name, send } = effect
      const record = this.records.find((one) => one.name === name)
      const isOnV2 = send !== undefined
      // After the resend window the journal keeps no keys of writes for V2 (docs/migration.md).
      const isKeyless = isOnV2 && this.sends[send]?.entry?.known !== 'keys'
      if (record === undefined || isKeyless || this.isUnknownTo(effect)) continue
      const batch = isOnV2 ? this.sends[send]?.begun : onV3.get(record.batch)
      if (batch === undefined) continue
      const place = batch * 1_000 + record.position
      const before = latest.get(key)
      // V2 itself orders the writes that it receives.
      if (before !== undefined && before.place > place && !(isOnV2 && before.isOnV2))
        this.find('order', name, `applied after the newer ${before.name}`)
      if (before === undefined || place > before.place) latest.set(key, { name, place, isOnV2 })
    }
  }
}

/** Returns true for a final answer, after which resending the batch would change nothing. */
function isFinal(part: PartReply): boolean {
  const { status } = part
  return (
    status === 201 || (status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 429)
  )
}

export function codeOf({ json }: PartReply): string {
  return /"ErrorCode":"([^"]*)"/.exec(json ?? '')?.[1] ?? ''
}
