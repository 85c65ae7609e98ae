import type { Random } from '../../src/sandbox/random.ts'
import type { PartReply } from '../../src/v2/index.ts'
import { batchOf } from '../support/batch-request.ts'
import { type Checks, codeOf } from './checks.ts'
import type { Send, SentBatch, SentRecord, SimulatedClient } from './sent.ts'
import type { BatchRequest, ReplyListener, SimulatedInstance } from './simulated-instance.ts'
import { guid } from './simulated-service.ts'
import type { Rates, Scale } from './swarm.ts'
import type { Actor, World } from './world.ts'

/** Returns the key (learner and event) with this number. Each school has its own learners. */
export function keyOf(school: number, number: number): string {
  return `${guid(2, school * 10 + number)} ${guid(3, 1)}`
}

interface ClientsOptions {
  readonly world: World
  readonly scale: Scale
  readonly rates: Rates
  readonly random: Random
  readonly outside: Actor
  readonly checks: Checks
  readonly tokens: Set<string>
  readonly instances: readonly (SimulatedInstance | undefined)[]
  readonly isCalm: () => boolean
  /** Called when an adapter begins to serve a batch from V2. */
  readonly onServedByV2: (adapter: Actor) => void
}

interface Delivery {
  readonly batch: SentBatch
  readonly authorization: string
  readonly hasWrongToken: boolean
  readonly instance: SimulatedInstance
  readonly isLost: boolean
  /** Returns true if the request must not arrive any more, because its client has given the request up. */
  readonly isDropped: () => boolean
}

/** The result for a mismatch (a batch whose ids in the header and the body differ), which gets a 200 without parts. */
const ANSWERED_200 = 'answered 200'
/** Returns the name of a school, by which `canary` chooses V2 or V3. At 50 % V2 serves one of the first two schools, and V3 the other. */
const unitOf = (school: number): string => `school ${school + 1}`

export class Clients {
  /** True once no client sends anything more. */
  isStopped = false
  private readonly clients: SimulatedClient[] = []
  private readonly world: World
  private readonly scale: Scale
  private readonly rates: Rates
  private readonly random: Random
  private readonly outside: Actor
  private readonly checks: Checks
  private readonly tokens: Set<string>
  private readonly instances: readonly (SimulatedInstance | undefined)[]
  private readonly isCalm: () => boolean
  private readonly onServedByV2: (adapter: Actor) => void
  private recordCount = 0

  constructor(options: ClientsOptions) {
    this.world = options.world
    this.scale = options.scale
    this.rates = options.rates
    this.random = options.random
    this.outside = options.outside
    this.checks = options.checks
    this.tokens = options.tokens
    this.instances = options.instances
    this.isCalm = options.isCalm
    this.onServedByV2 = options.onServedByV2
  }

  areDone(): boolean {
    return this.clients.every(({ isDone }) => isDone)
  }

  /** Makes the service accept the latest token of each client again. */
  calmDown(): void {
    for (const { tokens } of this.clients) this.tokens.add(tokens.at(-1) ?? '')
  }

  /** Starts a client, which sends one batch after another, and resends each batch until the batch is answered. */
  start(number: number): void {
    const { world, random, scale } = this
    const name = `c${number}`
    const school = number % scale.schools
    const client: SimulatedClient = { name, school, tokens: [], isDone: false }
    this.renewToken(client)
    this.clients.push(client)
    const isConstant = scale.faults.has('constantIds') && random.chance(0.5)
    let left = scale.batchesPerClient
    const next = (): void => {
      if (left === 0) {
        client.isDone = true
        return
      }
      left -= 1
      const batch = this.makeBatch(client, isConstant ? undefined : `${name}${left}`)
      world.after(this.outside, random.below(scale.thinkMs), () => this.send(batch, 0, next))
    }
    next()
  }

  private renewToken(client: SimulatedClient): void {
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token = `Bearer ${encode({ alg: 'none' })}.${encode({ iss: 'i', client_id: client.name, n: client.tokens.length })}.${encode({})}`
    client.tokens.push(token)
    this.tokens.add(token)
  }

  /** Makes a batch with these ids, or with the constant ids of its client if `ids` is `undefined`. */
  private makeBatch(client: SimulatedClient, ids: string | undefined): SentBatch {
    const { random, scale } = this
    const isSingle = scale.faults.has('singleRecords') && random.chance(0.5)
    const isMismatch = !isSingle && scale.faults.has('otherIds') && random.chance(0.3)
    const records: SentRecord[] = []
    const batch: SentBatch = {
      number: this.checks.batches.length,
      client,
      request: { kind: isSingle ? 'record' : 'batch', contentType: '', body: Buffer.alloc(0) },
      records,
      activeAdapters: [],
      sends: 0,
      lastSentMs: 0,
      journalBatches: [],
      checksBeforeResend: new Set(),
      hasOwnIds: ids !== undefined && !isSingle,
      isMismatch,
      isAbandoned: false,
      wasDenied: false,
    }
    const flat = Array.from({ length: isSingle ? 1 : 1 + random.below(scale.maxRecords) }, (_, position) => {
      const key = keyOf(client.school, random.below(scale.keys))
      const isBad = scale.faults.has('badRecords') && random.chance(0.2)
      const name = `${isBad ? 'bad' : 'm'}${(this.recordCount += 1)}${client.name}`
      records.push({ name, key, position, batch, final: undefined, allowedChanges: 0 })
      const [Learner = '', AttendableEvent = ''] = key.split(' ')
      const comment = random.pick([
        name,
        `${name} late bus`,
        `${name}  two  spaces `,
        `${name} two\nlines`,
        `${name} a long text that a service may cut`,
      ])
      return {
        Present: true,
        Absent: false,
        Learner,
        AttendableEvent,
        // The adapter rejects 'none' itself. The service rejects a record whose name begins with `bad`.
        SchoolAttendanceCode: isBad && random.chance(0.5) ? 'none' : guid(8, random.below(2)),
        MinutesLate: random.pick([null, 0, 5]),
        Comment: comment,
      }
    })
    const id = ids ?? `${client.name}0`
    const text = batchOf(flat, {
      ...{ batch: `batch_${id}`, changeset: `changeset_${id}` },
      ...(isMismatch ? { boundary: `other_${id}` } : {}),
    })
    const [contentType = '', body] = isSingle
      ? ['application/json', JSON.stringify(flat[0])]
      : [text.headers['Content-Type'], text.body]
    const sent = { ...batch, request: { ...batch.request, contentType, body: Buffer.from(body) } }
    for (const [index, record] of records.entries()) records[index] = { ...record, batch: sent }
    this.checks.batches.push(sent)
    this.checks.records.push(...records)
    return sent
  }

  private send(batch: SentBatch, attempt: number, done: () => void): void {
    const { world, random, outside, scale } = this
    if (this.isStopped) return
    const alive = this.instances.filter((one) => one !== undefined)
    const resend = (delayMs: number): void =>
      void world.after(outside, delayMs, () => this.send(batch, attempt + 1, done))
    const instance = alive[random.below(alive.length)]
    if (instance === undefined) {
      resend(100 + random.below(200))
      return
    }
    const { client } = batch
    if (!this.isCalm() && scale.faults.has('renewedTokens') && random.chance(0.2)) this.renewToken(client)
    const hasWrongToken = !this.isCalm() && scale.faults.has('wrongTokens') && random.chance(0.2)
    batch.wasDenied ||= hasWrongToken
    const authorization = hasWrongToken ? `${client.tokens.at(-1) ?? ''}x` : (client.tokens.at(-1) ?? '')
    const isLost = !this.isCalm() && random.chance(this.rates.lostReplies)
    const isImpatient = !this.isCalm() && random.chance(this.rates.impatience)
    let isFinished = false
    const name = `${client.name} batch ${batch.number}`
    const finish = (what: string): void => {
      if (isFinished) return
      isFinished = true
      world.log(() => `${name}: ${what}`)
      if (
        batch.records.every(({ final }) => final !== undefined) ||
        (batch.isMismatch && what === ANSWERED_200)
      ) {
        if (random.chance(0.2) && attempt < 50 && batch.hasOwnIds) resend(random.below(2_000))
        else done()
        return
      }
      // A single record has no ids, so its resend would be a new write. Its client therefore gives it up after most replies.
      const isOther = batch.request.kind === 'record' && !/\b(?:401|403|429|503)\b/.test(what)
      if (isOther || (!this.isCalm() && attempt > 3 && random.chance(0.1))) {
        batch.isAbandoned = true
        done()
        return
      }
      // Some clients wait a long time before they resend, like clients that resend a batch only together with their next register.
      const longestMs = scale.thinkMs > 1_000 && !this.isCalm() ? 10_000 : 3_000
      resend(50 + random.below(this.isCalm() || random.chance(0.2) ? longestMs : 800))
    }
    world.after(outside, isImpatient ? random.below(300) : 20_000, () => finish('no answer in time'))
    // With constant ids, a request that arrives after the client's next batch would count as a different batch, so it is dropped.
    const isDropped = (): boolean => isFinished && batch.request.kind === 'batch' && !batch.hasOwnIds
    const request = { batch, authorization, hasWrongToken, isDropped }
    this.deliver({ ...request, instance, isLost }, this.drawDelay(batch), finish)
    if (batch.hasOwnIds && !this.isCalm() && random.chance(this.rates.duplicates)) {
      // Simulates an intermediary that sends the request a second time, to any instance.
      const other = alive[random.below(alive.length)] ?? instance
      this.deliver({ ...request, instance: other, isLost: true }, this.drawDelay(batch), () => undefined)
    }
  }

  /** Draws how long a request is in transit. A batch with constant ids must not arrive after the next batch of its client. */
  private drawDelay({ hasOwnIds }: SentBatch): number {
    const { random, rates } = this
    if (!hasOwnIds || this.isCalm() || !random.chance(rates.lateRequests)) return 1 + random.below(10)
    return random.below(random.pick([100, 1_000, 6_000]))
  }

  /** Delivers a request after this delay, even if its client has given up waiting. */
  private deliver(
    { batch, authorization, hasWrongToken, instance: { actor, serve }, isLost, isDropped }: Delivery,
    delayMs: number,
    finish: (what: string) => void,
  ): void {
    const { world, checks } = this
    world.after(actor, delayMs, () => {
      if (this.isStopped || isDropped()) return
      batch.activeAdapters.push(actor)
      batch.sends += 1
      batch.lastSentMs = world.nowMs
      world.log(
        () =>
          `${batch.client.name} batch ${batch.number} (${batch.records.map((one) => `${one.name} on ${one.key.slice(34, 36)}`).join(', ')}) arrives at ${actor.name}${hasWrongToken ? ' with a wrong token' : ''}`,
      )
      const parts: (readonly [SentRecord, PartReply])[] = []
      const send = checks.recordSend(batch, authorization, actor)
      const listener = this.createListener(send, parts, { isLost, hasWrongToken }, finish)
      const unit = unitOf(batch.client.school)
      const request: BatchRequest = { authorization, unit, ...batch.request, send: send.number }
      serve(request, listener).then(
        () => {
          batch.activeAdapters.splice(batch.activeAdapters.indexOf(actor), 1)
          send.isFinished = true
          if (batch.activeAdapters.length === 0)
            for (const [record, part] of parts) checks.checkNotApplied(record, part)
        },
        (cause: unknown) => checks.reportCrash(actor.name, cause),
      )
    })
  }

  private createListener(
    send: Send,
    parts: (readonly [SentRecord, PartReply])[],
    { isLost, hasWrongToken }: Pick<Delivery, 'isLost' | 'hasWrongToken'>,
    finish: (what: string) => void,
  ): ReplyListener {
    const { world, outside, checks } = this
    const { batch } = send
    // The growing delay keeps the parts in order.
    let written = 0
    const deliver = (act: () => void): void => {
      written += 1
      if (!isLost) world.after(outside, 2 + written / 1_000, act)
    }
    const answers: string[] = []
    return {
      onStageEntry: (entry) => {
        send.entry = entry
        if (entry.side === 'v2') this.onServedByV2(send.instance)
        world.log(() => `${batch.client.name} batch ${batch.number}: ${entry.side} serves at ${entry.stage}`)
      },
      onBegin: (content, result) => checks.recordBegin(send, content, result),
      onUnrecorded: () => {
        send.isUnrecorded = true
      },
      onPart: (position, part) => {
        const record = batch.records[position]
        if (record === undefined) return
        checks.checkPart(record, part)
        parts.push([record, part])
        deliver(() => {
          answers.push(`${record.name} ${part.status}${part.status < 300 ? '' : ` ${codeOf(part)}`}`)
          // Replies to rejected credentials are not stored, so they may differ later.
          if (!hasWrongToken) checks.checkFinalAnswer(record, part)
        })
      },
      onEnd: () =>
        isLost
          ? world.after(outside, 50, () => finish('the reply was lost'))
          : deliver(() => finish(answers.join(', '))),
      onWholeReply: (status, code, cause) => {
        // Only a 500 with a code comes from the adapter and is a finding. A 500 of V2 has no code.
        if (status === 500 && code !== '')
          checks.report('false', batch.client.name, `answered ${status} ${code}: ${String(cause)}`)
        // A 503 says nothing about an earlier request with the batch, so only the first request is checked.
        if (status === 503 && batch.sends === 1) {
          checks.checkNotStored(batch)
          for (const record of batch.records) checks.checkNotApplied(record, { status: 503 } as PartReply)
        }
        deliver(() => finish(status === 200 ? ANSWERED_200 : `${status} ${code}`))
        if (isLost) world.after(outside, 50, () => finish('the reply was lost'))
      },
      onBroken: () =>
        void world.after(outside, 5, () => {
          // Without accepted credentials the journal stores no replies, so a refusal by the adapter may have another SequenceID next time.
          if (batch.wasDenied)
            for (const [record] of parts) if (record.final?.status === 400) record.allowedChanges += 1
          finish(`broken after ${answers.join(', ')}`)
        }),
    }
  }
}
