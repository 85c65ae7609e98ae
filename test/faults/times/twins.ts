import { setTimeout as delay } from 'node:timers/promises'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import type { Random } from '../../../src/sandbox/random.ts'
import type { Finding } from '../check/finding.ts'
import type { LoadClient, SentBatch } from '../load/client.ts'
import { composeBatch } from '../load/load.ts'
import type { Write } from '../load/write.ts'

/** A client that writes the same few contents to one learner and session, one mark after another. */
export interface Twins {
  /** Stops the client after its current mark. */
  stop(): Promise<void>
  count(): number
  readonly findings: readonly Finding[]
}

export interface TwinOptions {
  readonly seed: number
  /** The number of the first batch. */
  readonly from: number
  readonly random: Random
  readonly tick: () => number
  /** The schools whose clients write the marks, in any order. */
  readonly schools: readonly [School, ...School[]]
  readonly write: Omit<Write, 'name' | 'comment'>
  /**
   * True if the service keeps only one mark of a learner and session. A service that keeps several marks shows the mark with the latest
   * time, whenever it was recorded.
   */
  readonly replaces: boolean
  readonly effects: () => Promise<readonly EffectEntry[]>
  /** The time within which a mark must be final after `stop`. */
  readonly settleMs: number
}

export interface School {
  readonly client: LoadClient
  readonly name: string
  readonly token: string
  readonly face: 'V2' | 'V3'
}

const comments = ['the one', 'the other'] as const

/**
 * Starts a client of `Twins`. Its marks have equal contents and no names, so each mark is checked as soon as it is final: the service must
 * show its content, and V3 must have recorded it at most once.
 */
export function startTwins(options: TwinOptions): Twins {
  const { random, tick, schools, write, effects } = options
  const findings: Finding[] = []
  const steps: string[] = []
  let deadlineMs = Infinity
  let stopped = false
  let count = 0
  const own = async (): Promise<readonly EffectEntry[]> =>
    (await effects()).filter(({ learner, event }) => learner === write.learner && event === write.event)
  const report = (kind: Finding['kind'], of: string, because: string): void => {
    findings.push({ kind, of, because, story: steps.slice(-8).join('; ') })
  }
  const writeOne = async (): Promise<void> => {
    const comment = random.pick(comments)
    const { client, name: school, token, face } = random.pick(schools)
    const number = options.from + count
    const name = `twin ${number}`
    const before = (await own()).length
    const batch: SentBatch = composeBatch(
      { seed: options.seed, number, token, school },
      [{ ...write, name, comment }],
      tick(),
    )
    count += 1
    const isFinished = (): boolean => batch.finished !== undefined
    while (!isFinished() && performance.now() < deadlineMs) {
      await client.deliver(batch, 1)
      if (!isFinished()) await delay(random.below(80))
    }
    const after = await own()
    const given = after.slice(before)
    const answers = batch.writes[0]?.answers.map(({ at, answer }) => `${at} ${answer.kind}`) ?? []
    steps.push(
      `${name} "${comment}" of ${school}: sent ${shorten(batch.sends)}, answers ${shorten(answers)}, effects ${given.map(({ seq, face: on, comment: text }) => `${seq} of ${on} "${text ?? ''}"`).join(' ')}`,
    )
    const last = batch.writes[0]?.answers.at(-1)?.answer.kind
    if (!isFinished()) report('unsettled', name, `last answer ${last ?? 'nothing'}`)
    else if (last !== 'created')
      report('falseAnswer', name, `answered ${last ?? ''}, although nothing newer was sent`)
    else if (options.replaces && after.at(-1)?.comment !== comment)
      report('lost', name, 'answered created, but another mark stands')
    if (given.some((effect) => effect.comment !== comment))
      report('order', name, 'an older mark was recorded meanwhile')
    else if (given.filter((effect) => effect.face === 'V3').length > 1 || (face === 'V3' && given.length > 1))
      report('doubled', name, `recorded ${given.length} times`)
  }
  const run = async (): Promise<void> => {
    while (!stopped) await writeOne()
  }
  const running = run()
  return {
    findings,
    count: () => count,
    stop: async () => {
      stopped = true
      deadlineMs = performance.now() + options.settleMs
      await running
    },
  }
}

/** Shortens a list of more than six items to its first four items and its last. */
function shorten(list: readonly unknown[]): string {
  return (list.length <= 6 ? list : [...list.slice(0, 4), '…', list.at(-1)]).join(' ')
}
