import type { Random } from '../../src/sandbox/random.ts'
import type { PartReply } from '../../src/v2/index.ts'
import { batchOf } from '../support/batch-request.ts'
import { type Checks, codeOf, type SentBatch, type SentRecord, type SimulatedClient } from './checks.ts'
import type { BatchRequest, ReplyListener, SimulatedInstance } from './simulated-instance.ts'
import { guid } from './simulated-service.ts'
import type { Rates, Scale } from './swarm.ts'
import type { Actor, World } from './world.ts'

/** The learner and the event of a number. */
export function keyOf(number: number): string {
  return `${guid(2, number)} ${guid(3, 1)}`
}

interface ClientsOptions {
  readonly world: World
  readonly scale: Scale
  readonly rates: Rates
  readonly random: Random
  readonly outside: Actor
  readonly checks: Checks
  /** Those that the service accepts. */
  readonly tokens: Set<string>
  readonly instances: readonly (SimulatedInstance | undefined)[]
  /** True once nothing fails any longer. */
  readonly isCalm: () => boolean
}

/** Clients of V2: each sends one batch after another, and each of them again until it is answered. */
export class Clients {
  /** Nothing is sent any longer. */
  isOver = false
  private readonly all: SimulatedClient[] = []
  private readonly world: World
  private readonly scale: Scale
  private readonly rates: Rates
  private readonly random: Random
  private readonly outside: Actor
  private readonly checks: Checks
  private readonly tokens: Set<string>
  private readonly instances: readonly (SimulatedInstance | undefined)[]
  private readonly isCalm: () => boolean
  private sending: SentBatch | undefined
  private names = 0

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
  }

  areDone(): boolean {
    return this.all.every(({ isDone }) => isDone)
  }

  /** The latest token of each is accepted from now on. */
  calmDown(): void {
    for (const { tokens } of this.all) this.tokens.add(tokens.at(-1) ?? '')
  }

  /** Clients send one batch after another, and each again until it is answered. */
  start(number: number): void {
    const { world, random, scale } = this
    const name = `c${number}`
    const client: SimulatedClient = { name, tokens: [], isDone: false }
    this.renewToken(client)
    this.all.push(client)
    const isConstant = scale.faults.has('constantIds') && random.chance(0.5)
    let left = scale.batchesPerClient
    const next = (): void => {
      if (left === 0) {
        client.isDone = true
        return
      }
      left -= 1
      const batch = this.makeBatch(client, isConstant ? `${name}0` : `${name}${left}`)
      world.at(this.outside, random.below(scale.thinkMs), () => this.send(batch, 0, next))
    }
    next()
  }

  private renewToken(client: SimulatedClient): void {
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token = `Bearer ${encode({ alg: 'none' })}.${encode({ iss: 'i', client_id: client.name, n: client.tokens.length })}.${encode({})}`
    client.tokens.push(token)
    this.tokens.add(token)
  }

  private makeBatch(client: SimulatedClient, ids: string): SentBatch {
    const { random, scale } = this
    const records: SentRecord[] = []
    const batch: SentBatch = {
      number: this.checks.batches.length,
      client,
      request: { contentType: '', body: Buffer.alloc(0) },
      records,
      atWork: [],
      sends: 0,
      lastSentMs: 0,
      begun: [],
      isAbandoned: false,
      wasDenied: false,
    }
    const flat = Array.from({ length: 1 + random.below(scale.maxRecords) }, (_, position) => {
      const key = keyOf(random.below(scale.keys))
      const isBad = scale.faults.has('badRecords') && random.chance(0.2)
      const name = `${isBad ? 'bad' : 'm'}${(this.names += 1)}${client.name}`
      records.push({ name, key, position, batch, final: undefined })
      const [Learner = '', AttendableEvent = ''] = key.split(' ')
      const comment = random.pick([
        name,
        `${name} late bus`,
        `${name}  two  blanks `,
        `${name} a long text that a service may cut`,
      ])
      return {
        Present: true,
        Absent: false,
        Learner,
        AttendableEvent,
        SchoolAttendanceCode: guid(8, random.below(2)),
        MinutesLate: random.pick([null, 0, 5]),
        Comment: comment,
      }
    })
    const text = batchOf(flat, { batch: `batch_${ids}`, changeset: `changeset_${ids}` })
    const sent = {
      ...batch,
      request: { contentType: text.headers['Content-Type'] ?? '', body: Buffer.from(text.body) },
    }
    for (const [index, record] of records.entries()) records[index] = { ...record, batch: sent }
    this.checks.batches.push(sent)
    this.checks.records.push(...records)
    return sent
  }

  readonly onBegin = (content: Uint8Array, number: number | undefined): void => {
    const hex = Buffer.from(content).toString('hex')
    if (number === undefined) {
      const batch = this.sending
      if (batch !== undefined && !this.checks.batchOfContent.has(hex))
        this.checks.batchOfContent.set(hex, batch)
      return
    }
    const batch = this.checks.batchOfContent.get(hex)
    if (batch !== undefined && !batch.begun.includes(number)) batch.begun.push(number)
  }

  /** Sends a batch until each record has its final answer. */
  private send(batch: SentBatch, attempt: number, done: () => void): void {
    const { world, random, outside, scale } = this
    if (this.isOver) return
    const alive = this.instances.filter((one) => one !== undefined)
    const again = (delayMs: number): void =>
      void world.at(outside, delayMs, () => this.send(batch, attempt + 1, done))
    const instance = alive[random.below(alive.length)]
    if (instance === undefined) {
      again(100 + random.below(200))
      return
    }
    const { client } = batch
    if (!this.isCalm() && scale.faults.has('renewedTokens') && random.chance(0.2)) this.renewToken(client)
    const isWrong = !this.isCalm() && scale.faults.has('wrongTokens') && random.chance(0.2)
    batch.wasDenied ||= isWrong
    const authorization = isWrong ? `${client.tokens.at(-1) ?? ''}x` : (client.tokens.at(-1) ?? '')
    const isLost = !this.isCalm() && random.chance(this.rates.lostReplies)
    const isImpatient = !this.isCalm() && random.chance(this.rates.impatience)
    let isOver = false
    const name = `${client.name} batch ${batch.number}`
    const over = (what: string): void => {
      if (isOver) return
      isOver = true
      world.tell(() => `${name}: ${what}`)
      if (batch.records.every(({ final }) => final !== undefined)) {
        if (random.chance(0.2) && attempt < 50 && !this.scale.faults.has('constantIds'))
          again(random.below(2_000))
        else done()
        return
      }
      if (!this.isCalm() && attempt > 3 && random.chance(0.1)) {
        batch.isAbandoned = true
        done()
        return
      }
      again(50 + random.below(this.isCalm() ? 3_000 : 800))
    }
    world.at(outside, isImpatient ? random.below(300) : 20_000, () => over('no answer in time'))
    const request: BatchRequest = { authorization, ...batch.request }
    world.at(instance.actor, 1 + random.below(10), () => {
      batch.atWork.push(instance.actor)
      batch.sends += 1
      batch.lastSentMs = world.nowMs
      world.tell(
        () =>
          `${name} (${batch.records.map((one) => `${one.name} on ${one.key.slice(34, 36)}`).join(', ')}) arrives at ${instance.actor.name}${isWrong ? ' with a wrong token' : ''}`,
      )
      const told: (readonly [SentRecord, PartReply])[] = []
      const listener = this.listen(batch, told, isLost, over)
      this.sending = batch
      instance.serve(request, listener).then(
        () => {
          batch.atWork.splice(batch.atWork.indexOf(instance.actor), 1)
          for (const [record, part] of told) this.checks.checkNotApplied(record, part)
        },
        (cause: unknown) =>
          this.checks.find(
            'crash',
            instance.actor.name,
            cause instanceof Error ? (cause.stack ?? '') : String(cause),
          ),
      )
    })
  }

  private listen(
    batch: SentBatch,
    told: (readonly [SentRecord, PartReply])[],
    isLost: boolean,
    over: (what: string) => void,
  ): ReplyListener {
    const { world, outside } = this
    // What was written first is read first.
    let written = 0
    const deliver = (act: () => void): void => {
      written += 1
      if (!isLost) world.at(outside, 2 + written / 1_000, act)
    }
    const seen: string[] = []
    return {
      part: (position, part) => {
        const record = batch.records[position]
        if (record === undefined) return
        this.checks.checkTold(record, part)
        told.push([record, part])
        deliver(() => {
          seen.push(`${record.name} ${part.status}${part.status < 300 ? '' : ` ${codeOf(part)}`}`)
          this.checks.checkAnswer(record, part)
        })
      },
      end: () =>
        isLost
          ? world.at(outside, 50, () => over('the reply was lost'))
          : deliver(() => over(seen.join(', '))),
      whole: (status, code, cause) => {
        if (status === 500)
          this.checks.find('false', batch.client.name, `answered ${status} ${code}: ${String(cause)}`)
        // Of a batch that was sent before, it says nothing of what became of it then.
        if (status === 503 && batch.sends === 1)
          for (const record of batch.records) told.push([record, { status: 503 } as PartReply])
        deliver(() => over(`${status} ${code}`))
        if (isLost) world.at(outside, 50, () => over('the reply was lost'))
      },
      broken: () => void world.at(outside, 5, () => over(`broken after ${seen.join(', ')}`)),
    }
  }
}
