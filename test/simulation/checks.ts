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
  /** The time after V2 has applied a batch without an entry in the journal, during which V3 must not apply the batch too. */
  readonly resendWindowMs: number
  /** Returns the lease that a process holds, or `undefined` if it holds none. */
  readonly leaseOf: (actor: Actor) => number | undefined
  /** True if no clock is stepped or drifts, and the service stores times unchanged. */
  readonly areClocksSound: boolean
  /** True if the service does not cut comments, or if its replies always show where it cuts them. */
  readonly areValuesShown: boolean
  /** True if replies show the stored times, or if the service never changes its clock and its rules for times. */
  readonly areTimesShown: boolean
  /** True if the journal stores credentials, so that a restarted process has them. */
  readonly keepsCredentials: boolean
  /** True if the journal always answers in time, so that V2's final replies are always stored. */
  readonly isReplySure: boolean
}

/** Checks the promises of the adapter against the states of the service and the journal. */
export class Checks {
  readonly findings: Finding[] = []
  readonly records: SentRecord[] = []
  readonly batches: SentBatch[] = []
  readonly sends: Send[] = []
  /** The batches by the hash of their content in the journal, in hexadecimal. */
  readonly batchOfContent = new Map<string, SentBatch>()
  private readonly endedProcesses = new Set<string>()
  /** The records that were ambiguous when the check last searched for records without an answer. */
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
    service.onV2Request = (number) => this.recordV2Request(number)
  }

  report(kind: Finding['kind'], subject: string, reason: string): void {
    this.world.log(() => `FINDING ${kind} of ${subject}: ${reason}`)
    this.findings.push({ kind, subject, reason })
  }

  reportCrash(of: string, cause: unknown): void {
    this.report('crash', of, cause instanceof Error ? (cause.stack ?? cause.message) : String(cause))
  }

  /** Marks a process and its requests in progress as ended. */
  recordEnd(actor: Actor): void {
    this.endedProcesses.add(actor.name)
    for (const batch of this.batches)
      batch.activeAdapters = batch.activeAdapters.filter((one) => one !== actor)
  }

  isIdle(): boolean {
    return this.batches.every(({ activeAdapters }) => activeAdapters.length === 0)
  }

  /**
   * Returns a function that returns true for a record whose outcome nobody can find out. Either its key has another mark that the journal
   * has not confirmed, because another program wrote the mark or because V2 applied it with an unknown outcome or key, so that only times
   * could distinguish the marks. Or a newer record of the key waits for credentials.
   */
  private findAmbiguous(): (record: Pick<SentRecord, 'key' | 'name'>) => boolean {
    const confirmed = this.confirmedNames()
    const unknown = this.service.effects.filter(
      ({ name, send }) =>
        !confirmed.has(`${send ?? 'V3'} ${name}`) &&
        (send !== undefined || this.records.every((record) => record.name !== name)),
    )
    // A record that waits for credentials may have been applied, so the adapter posts no older record of its key.
    const waiting = new Set(
      this.openRecords().flatMap(({ batch, position }) => {
        const sent = this.batchOf(batch)
        const record = sent?.records[position]
        return sent !== undefined && record !== undefined && this.waitsForCredentials(sent)
          ? [record.key]
          : []
      }),
    )
    // A record's own mark does not make it ambiguous.
    return ({ key, name }) =>
      waiting.has(key) || unknown.some((effect) => effect.key === key && effect.name !== name)
  }

  /** Returns the names of confirmed records. Each name is preceded by the number of the request that V2 received, or by `V3`. */
  private confirmedNames(): ReadonlySet<string> {
    const rows = this.database.all<{ batch: number; position: number; isOnV2: number }>(
      'select batch, position, on_v2 as isOnV2 from journal_records join journal_batches on id = batch where state = 1',
    )
    return new Set(
      rows.flatMap(({ batch, position, isOnV2 }) => {
        const send = isOnV2 === 1 ? this.sends.find(({ journalBatch }) => journalBatch === batch) : undefined
        if (isOnV2 === 1 && send?.entry?.known !== 'keys') return []
        const sent = send?.batch ?? this.batches.find(({ journalBatches }) => journalBatches.includes(batch))
        const record = sent?.records[position]
        return record === undefined ? [] : [`${send?.number ?? 'V3'} ${record.name}`]
      }),
    )
  }

  private effectsOf({ name }: SentRecord): SimulatedService['effects'] {
    return this.service.effects.filter((effect) => effect.name === name)
  }

  private knownEffectsOf(record: SentRecord): SimulatedService['effects'] {
    return this.effectsOf(record).filter((effect) => !this.isEffectUnknown(effect))
  }

  recordSend(batch: SentBatch, token: string, instance: Actor): Send {
    for (const check of batch.checksBeforeResend) check()
    const send: Send = {
      ...{ number: this.sends.length, batch, token, instance, journalBatch: undefined, entry: undefined },
      isUnrecorded: false,
      wasAnswered:
        this.options.isReplySure && !this.isRefusedAnew(batch) && this.hasReplyOfV2(batch, token, instance),
      ...{ sentToV2: 0, isFinished: false, clockSteps: instance.clockSteps },
    }
    this.sends.push(send)
    return send
  }

  /** Returns true if V2 refused the whole batch and another adapter, which does not know the token, may be sending the batch again. */
  private isRefusedAnew({ activeAdapters, records }: SentBatch): boolean {
    return (
      activeAdapters.length > 1 && records.every(({ final }) => final !== undefined && final.status >= 400)
    )
  }

  /** Notes that the journal begins a batch. Called twice: with `undefined` before `begin`, and with its result afterwards. */
  recordBegin(send: Send, content: Uint8Array, result: BeginResult | undefined): void {
    const { batch } = send
    if (result === undefined) {
      const hex = Buffer.from(content).toString('hex')
      if (!this.batchOfContent.has(hex)) this.batchOfContent.set(hex, batch)
      return
    }
    if (result.kind === 'new') send.journalBatch = result.batch
    if (!batch.journalBatches.includes(result.batch)) batch.journalBatches.push(result.batch)
  }

  /**
   * Returns true if V2's last reply is in the journal and final, and this adapter may return it for this token without a read of V2 that
   * checks the token.
   */
  private hasReplyOfV2(batch: SentBatch, token: string, instance: Actor): boolean {
    if (batch.records.some(({ final }) => final === undefined)) return false
    const last = this.sends.findLast((send) => send.batch === batch && send.sentToV2 > 0)
    if (last?.journalBatch === undefined || last.token !== token || last.instance !== instance) return false
    // After its clock was set, the adapter no longer trusts its earlier verdicts on tokens and must check the token with a read of V2.
    if (last.clockSteps !== instance.clockSteps) return false
    const rows = this.recordsOf(last.journalBatch)
    return (
      rows.length > 0 && rows.every(({ state, reason }) => state === 1 || (state === 2 && reason === 'part'))
    )
  }

  private recordsOf(batch: number): readonly { readonly state: number; readonly reason: string | null }[] {
    return this.database.all('select state, reason from journal_records where batch = $1', batch)
  }

  /** Checks a request to V3: a process may post only under a lease, and only while no other process owns the batch. */
  readonly checkRequestToV3 = ({ method, body }: ServiceRequest, actor: Actor): void => {
    if (method !== 'POST') return
    const process = actor.name
    if (this.options.leaseOf(actor) === undefined) this.report('false', process, 'posts without a lease')
    for (const [, name] of body.matchAll(/"Comment":"(\w+)/g)) {
      const record = this.records.find((one) => one.name === name)
      if (record === undefined) continue
      const owners = this.ownersOf(record)
      if (owners.length > 0 && !owners.includes(process))
        this.report('false', record.name, `${process} posts it while ${owners.join(' and ')} owns it`)
    }
  }

  /** Returns the living processes with a lease that have this record open for V3. */
  private ownersOf({ batch, position }: SentRecord): readonly string[] {
    if (batch.journalBatches.length === 0) return []
    return this.database
      .all<{ pid: number; started: string }>(
        `select pid, started from journal_records r join journal_batches b on b.id = batch join journal_instances i on i.id = instance
         where batch in (select value from json_each($1)) and position = $2 and r.state = 0 and on_v2 = 0 and lost = 0`,
        JSON.stringify(batch.journalBatches),
        position,
      )
      .map(({ pid, started }) => processName(pid, started))
      .filter((name) => !this.endedProcesses.has(name))
  }

  /**
   * Checks that a write goes to V2 only while V2 serves some schools and, if the journal stores the write, only under a lease and while the
   * write is open.
   */
  readonly checkRequestToV2 = ({ method, headers }: ServiceRequest, actor: Actor): void => {
    const send = this.sends[Number(headers[SEND_FIELD])]
    if (method !== 'POST' || send === undefined) return
    if (this.isAllOnV3())
      this.report('false', `batch ${send.batch.number}`, 'sent to V2 while V3 serves everything')
    if (send.journalBatch === undefined || send.isUnrecorded) return
    if (this.options.leaseOf(actor) === undefined)
      this.report('false', `batch ${send.batch.number}`, `${actor.name} sends it to V2 without a lease`)
    const rows = this.recordsOf(send.journalBatch)
    if (rows.length > 0 && rows.every(({ state }) => state !== 0))
      this.report('false', `batch ${send.batch.number}`, 'sent to V2 after another instance has settled it')
  }

  private isAllOnV3(): boolean {
    if (this.database.isChanging) return false
    const [row] = this.database.all<{ content: string }>(
      `select content from rollout_audit where partner <> '' order by entry desc limit 1`,
    )
    return (
      row !== undefined &&
      isAllOnV3((JSON.parse(row.content) as { kept: { state: StageSetting } }).kept.state)
    )
  }

  /**
   * Counts a request that V2 received, and checks that V2 had to receive it. V2 does not recognise a repeated batch, so each of its replies
   * may differ.
   */
  private recordV2Request(number: number): void {
    const send = this.sends[number]
    if (send === undefined) return
    const { batch, entry, wasAnswered, isUnrecorded } = send
    send.sentToV2 += 1
    this.world.log(() => `V2: gets ${batch.client.name} batch ${batch.number}`)
    for (const record of batch.records) record.allowedChanges += 1
    if (send.sentToV2 > 1) this.report('doubled', `batch ${batch.number}`, 'one request was sent to V2 twice')
    if (wasAnswered && !isUnrecorded && entry?.stage !== 'legacy')
      this.report(
        'doubled',
        `batch ${batch.number}`,
        'sent to V2 again although the journal had the final reply',
      )
  }

  /**
   * Returns true for the effect of a write that V2 received and that the journal does not know. The adapter is not responsible for such an
   * effect.
   */
  private isEffectUnknown({ send }: Effect): boolean {
    const of = send === undefined ? undefined : this.sends[send]
    return of !== undefined && this.isUnknownToJournal(of)
  }

  /** Returns true if the journal did not store V2's reply, for example because the instance had lost its lease. */
  private isReplyLost({ journalBatch }: Send): boolean {
    return journalBatch !== undefined && this.recordsOf(journalBatch).some(({ state }) => state === 3)
  }

  private isUnknownToJournal({ isUnrecorded, entry }: Send): boolean {
    return isUnrecorded || entry?.known === 'nothing'
  }

  /** Returns true for a record that was applied again without another record of its key in between. */
  isDoubledInARow(name: string): boolean {
    const { key } = this.records.find((one) => one.name === name) ?? {}
    const names = this.service.effects.filter((effect) => effect.key === key).map((effect) => effect.name)
    return names.some((one, index) => one === name && names[index + 1] === name)
  }

  /** Checks a step forward after which V3 serves everything: no request to V2 may be in progress. */
  readonly checkStepToV3 = (): void => {
    for (const { batch, entry, instance, isFinished } of this.sends)
      if (
        entry?.side === 'v2' &&
        !isFinished &&
        !instance.isDead &&
        this.options.leaseOf(instance) !== undefined
      )
        this.report('false', `batch ${batch.number}`, 'still being sent to V2 while V3 serves everything')
  }

  /** Checks a part when the adapter sends it: "created" must be true at this moment. */
  checkPart(record: SentRecord, part: PartReply): void {
    if (part.status === 201 && this.effectsOf(record).length === 0)
      this.report('lost', record.name, 'answered "created", but the service has no such mark')
  }

  /** Checks that "not applied" stays true until the client resends the record, for at most 10 s. */
  checkNotApplied(record: SentRecord, part: PartReply): void {
    if (part.status !== 503) return
    const { batch } = record
    const before = this.knownEffectsOf(record).length
    if (before > 0) this.report('false', record.name, 'answered "not applied", but the service has it')
    const check = (): void => {
      batch.checksBeforeResend.delete(check)
      if (this.knownEffectsOf(record).length > before)
        this.report('false', record.name, 'answered "not applied", but it was applied later')
    }
    batch.checksBeforeResend.add(check)
    this.world.after(this.outside, 10_000, () => {
      if (batch.checksBeforeResend.has(check)) check()
    })
  }

  /** Checks that the journal stored no open records of a batch whose first request was rejected as a whole. */
  checkNotStored(batch: SentBatch, sends = batch.sends): void {
    // The client has resent the batch, and the resend may have stored it.
    if (batch.sends > sends) return
    // The running transaction may be rolled back, so its rows do not count yet.
    if (this.database.isChanging) {
      this.world.after(this.outside, 1, () => this.checkNotStored(batch, sends))
      return
    }
    const [content] = [...this.batchOfContent].find(([, one]) => one === batch) ?? []
    const open = this.database.all(
      'select 1 from journal_records join journal_batches on id = batch where content = $1 and state = 0 and on_v2 = 0',
      content ?? '',
    )
    if (open.length > 0)
      this.report('false', `batch ${batch.number}`, 'answered "not applied", but the journal stored it')
  }

  checkFinalAnswer(record: SentRecord, part: PartReply): void {
    if (!isFinal(part)) return
    const { final, batch } = record
    if (final?.status === part.status && final.json === part.json) return
    const isAnew = record.allowedChanges > 0
    if (isAnew) record.allowedChanges -= 1
    // The answer may change if the journal does not have V2's latest reply.
    const isUnknown = this.sends.some(
      (send) =>
        send.batch === batch &&
        send.sentToV2 > 0 &&
        (this.isUnknownToJournal(send) || send.entry?.stage === 'legacy' || this.isReplyLost(send)),
    )
    if (final === undefined || isAnew || isUnknown) record.final = part
    else
      this.report(
        'changed',
        record.name,
        `answered ${final.status} and then ${part.status}: ${final.json ?? ''} ${part.json ?? ''}`,
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

  unansweredRecords(): readonly SentRecord[] {
    const open = this.records.filter(
      ({ final, batch }) =>
        final === undefined &&
        batch.sends > 0 &&
        !batch.isAbandoned &&
        !batch.isMismatch &&
        !this.mayStayUnknown(batch),
    )
    const isAmbiguous = open.length === 0 ? () => false : this.findAmbiguous()
    this.ambiguous = new Set(open.filter(isAmbiguous))
    return open.filter((record) => !this.ambiguous.has(record))
  }

  /**
   * Returns true if the outcomes of this batch may stay unknown (docs/decisions/012). V2 may have edited a known mark while it received the
   * batch, and the times do not show the edit. Or a mark may belong to this record or to an older record, because no reply has shown how
   * the service cuts comments or changes times.
   */
  private mayStayUnknown(batch: SentBatch): boolean {
    const { areClocksSound, areValuesShown, areTimesShown } = this.options
    const wasOnV2 = this.sends.some((send) => send.batch === batch && send.entry?.side === 'v2')
    return !areValuesShown || !areTimesShown || (!areClocksSound && wasOnV2)
  }

  unsettledRecords(): ReturnType<Checks['openRecords']> {
    const open = this.openRecords()
    if (open.length === 0) return open
    const isAmbiguous = this.findAmbiguous()
    return open.filter(({ batch, position, state, isOnV2 }) => {
      // An unknown outcome of V2 stays unknown until the client resends the batch.
      if (isOnV2 === 1) return state === 0
      const sent = this.batchOf(batch)
      const record = sent?.records[position]
      if (sent === undefined || record === undefined) return true
      return !this.waitsForCredentials(sent) && !isAmbiguous(record) && !this.mayStayUnknown(sent)
    })
  }

  private batchOf(number: number): SentBatch | undefined {
    return this.batches.find(({ journalBatches }) => journalBatches.includes(number))
  }

  /** Returns true if the batch waits for credentials: its client does not resend the batch, and V3 has not accepted the client's token. */
  private waitsForCredentials(sent: SentBatch): boolean {
    if (!sent.isAbandoned && !sent.isMismatch) return false
    const isAccepted = this.hasAcceptedToken(sent)
    const { keepsCredentials } = this.options
    if (sent.request.kind === 'record' && !(isAccepted && keepsCredentials)) return true
    return sent.wasDenied || !(isAccepted || keepsCredentials)
  }

  /** Returns true if V3 has accepted the client's credentials and the instance that works on the batch may know them. */
  private hasAcceptedToken({ client, records }: SentBatch): boolean {
    const accepted = this.records.filter(
      ({ batch, final }) => batch.client === client && final?.status === 201,
    )
    if (this.options.keepsCredentials) return accepted.length > 0
    // Only the instances that received credentials know them if the journal does not store them.
    const holders = new Set(records.flatMap((record) => this.ownersOf(record)))
    const batches = new Set(accepted.map(({ batch }) => batch))
    return this.sends.some(({ batch, instance }) => batches.has(batch) && holders.has(instance.name))
  }

  checkEnd(): void {
    const { service, records } = this
    for (const record of records) {
      const all = this.effectsOf(record)
      const onV3 = all.filter(({ send }) => send === undefined)
      if (onV3.length > 1) this.report('doubled', record.name, `applied ${onV3.length} times`)
      this.checkBothSides(record, all)
      const effects = this.knownEffectsOf(record)
      const { final } = record
      if (final !== undefined && final.status >= 400 && final.status !== 409 && effects.length > 0)
        this.report('false', record.name, `answered ${final.status}, but it was applied`)
      if (final !== undefined && codeOf(final) === 'ADP_SUPERSEDED' && effects.length > 0)
        this.report('false', record.name, 'answered "superseded" and "not applied", but it was applied')
    }
    const { ambiguous } = this
    for (const record of this.unansweredRecords())
      if (!ambiguous.has(record)) this.report('unsettled', record.name, 'its client has no final answer')
    for (const { name, token } of service.effects) {
      const owner = /c\d+$/.exec(name)?.[0]
      const record = records.find((one) => one.name === name)
      if (record !== undefined && !record.batch.client.tokens.includes(token))
        this.report('lent', name, `sent with a token that does not belong to ${owner ?? 'its client'}`)
    }
    this.checkOrder()
    const open = this.unsettledRecords()
    if (open.length > 0) this.report('unsettled', 'journal', JSON.stringify(open))
    this.checkConfirmed()
    this.checkLedger()
  }

  /** Checks that the service has every mark that is confirmed on V3 in the journal, even if its client got no answer. */
  private checkConfirmed(): void {
    const rows = this.database.all<{ content: string; position: number }>(
      'select content, position from journal_records join journal_batches on id = batch where state = 1 and on_v2 = 0',
    )
    for (const { content, position } of rows) {
      const record = this.batchOfContent.get(content)?.records[position]
      if (record !== undefined && this.effectsOf(record).length === 0)
        this.report('lost', record.name, 'confirmed in the journal, but the service has no such mark')
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
      this.report('ledger', 'journal', `${JSON.stringify(ledger)} of ${total} records, ${opened} open`)
  }

  /** Checks after the purge that no record still waits for its client to resend the batch, and that the ledger balances. */
  checkExpired(): void {
    const [left] = this.database.all<{ count: number }>(
      'select count(*) as count from journal_records where active = 1 and state <> 0 and retry < 0',
    )
    if (left?.count !== 0)
      this.report('leftover', 'journal', `${left?.count ?? 0} records wait for their clients`)
    this.checkLedger()
  }

  /**
   * Checks that V2 and V3 did not both apply a record. If the journal does not know the write of V2, the check covers only the resend
   * window after this write.
   */
  private checkBothSides({ name }: SentRecord, effects: readonly Effect[]): void {
    const posted = effects.find(({ send }) => send === undefined)
    if (posted === undefined) return
    for (const effect of effects) {
      if (effect.send === undefined) continue
      const isEarly = posted.atMs > effect.atMs && posted.atMs - effect.atMs < this.options.resendWindowMs
      if (this.isEffectUnknown(effect) && !isEarly) continue
      if (this.isExplained(effect, posted)) continue
      this.report('doubled', name, `applied by V2 at ${effect.atMs} and by V3 at ${posted.atMs}`)
    }
  }

  /**
   * Returns true if another write between these two effects of a record explains the second effect. V2 may have applied an older record
   * later, so that a read-back did not find the newer mark. Or clocks were set, and only times could distinguish a write whose key the
   * journal does not store from an older write (docs/decisions/012).
   */
  private isExplained(from: Effect, to: Effect): boolean {
    const sendOf = ({ send }: Effect): Send | undefined => (send === undefined ? undefined : this.sends[send])
    const between = this.service.effects
      .filter(({ key, atMs }) => key === from.key && (atMs - from.atMs) * (atMs - to.atMs) < 0)
      .flatMap((effect) => sendOf(effect) ?? [])
    const { journalBatch: own = 0 } = sendOf(from) ?? {}
    if (between.some(({ journalBatch: begun = own }) => begun < own)) return true
    return !this.options.areClocksSound && between.some(({ entry }) => entry?.known !== 'keys')
  }

  /** Checks that marks of one key are applied in the order in which the journal received them. */
  private checkOrder(): void {
    // A batch that V3 takes over from V2 has the position of its first request that V2 may have applied.
    const rows = this.database.all<{ id: number; content: string; isOnV2: number; isApplied: number }>(
      'select id, content, on_v2 as isOnV2, exists (select 1 from journal_records where batch = id and state in (1, 3)) as isApplied from journal_batches order by id',
    )
    const onV3 = new Map<SentBatch, number>()
    const onV2 = new Map<SentBatch, number>()
    for (const { id, content, isOnV2, isApplied } of rows) {
      const batch = this.batchOfContent.get(content)
      if (batch === undefined) continue
      if (!batch.journalBatches.includes(id)) batch.journalBatches.push(id)
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
      const hasNoKey = isOnV2 && this.sends[send]?.entry?.known !== 'keys'
      if (record === undefined || hasNoKey || this.isEffectUnknown(effect)) continue
      const batch = isOnV2 ? this.sends[send]?.journalBatch : onV3.get(record.batch)
      if (batch === undefined) continue
      const place = batch * 1_000 + record.position
      const before = latest.get(key)
      // V2 itself orders the writes that it receives.
      if (before !== undefined && before.place > place && !(isOnV2 && before.isOnV2))
        this.report('order', name, `applied after the newer ${before.name}`)
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
