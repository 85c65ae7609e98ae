import { createHash } from 'node:crypto'
import type { AddressInfo } from 'node:net'

import { request } from 'undici'

import type { ConsoleOptions } from '../../../src/console/server.ts'
import { createConsole } from '../../../src/console/server.ts'
import type {
  ConsolePorts,
  Explained,
  PartnerFacts,
  StageDesk,
  TriedBatch,
} from '../../../src/console/ports.ts'
import type { ListedOperator } from '../../../src/rollout/operators.ts'
import { sampleComparison } from './sample-comparison.ts'
import { createSampleData, MARKUP, NOW_MS } from './sample-data.ts'

export const tokenOf = (name: string): string => `token of ${name}`.replaceAll(' ', '-')

const operator = (
  name: string,
  role: ListedOperator['role'],
  more: Partial<ListedOperator> = {},
): ListedOperator => ({
  ...{ name, role, ...more },
  tokenSha256: createHash('sha256').update(tokenOf(name)).digest('hex'),
})

/** People of each role who see all partners, and two people who see only zenith. */
export const people: readonly ListedOperator[] = [
  operator('olga', 'operator', { reveal: true }),
  operator('otto', 'operator'),
  operator('anna', 'approver'),
  operator('vera', 'viewer'),
  operator('zoe', 'operator', { partners: ['zenith'] }),
  operator('zack', 'viewer', { partners: ['zenith'], reveal: true }),
]

const partnerOf = (partner: string): PartnerFacts => ({
  document: {
    partner,
    ...{ stage: 'canary', percent: 20, unit: 'school', source: 'store', revision: 7, by: 'olga' },
    since: new Date(NOW_MS - 5 * 86_400_000).toISOString(),
    reason: partner === 'acme' ? MARKUP : 'first schools',
    ...(partner === 'acme' ? { pending } : {}),
    advice: {
      verdict: 'inconclusive',
      missing: ['Seen on 3 of 5 days.', 'No difference was seen in 402 of 598 learner-days.'],
    },
  },
  notes: partner === 'acme' ? ['v3 waits for the approval of another operator until 2026-11-27'] : [],
  trailFault: undefined,
  guardAlarm:
    partner === 'acme'
      ? 'V3 does worse than V2 in the same period: 12 of 21 counted writes on V3 were bad.'
      : undefined,
  canary: { percent: 20, always: ['3001', '3002'], never: [] },
  next: { stage: 'v3', percent: 100 },
  conditions: [
    {
      name: 'distinct records',
      state: 'waiting',
      progress: '312 of 1,000',
      sentence: '312 of 1,000 distinct records were seen on V3.',
    },
    { name: 'days at this stage', state: 'pass', progress: '5 of 5', sentence: undefined },
    { name: 'readable writes', state: 'fail', progress: undefined, sentence: MARKUP },
  ],
  guard: `The guard has counted 120 writes ${MARKUP}`,
})

const pending = {
  stage: 'v3',
  percent: 100,
  revision: 8,
  by: 'otto',
  reason: MARKUP,
  needsApproval: true,
  expires: '2026-11-27T09:30:00.000Z',
} as const

/** Creates a stub with unchanging stages. `calls` collects the steps and the actions that the console records. */
export function createSampleStages(calls: string[]): StageDesk {
  const partners = ['acme', 'zenith']
  return {
    list: async (partner) => partners.filter((one) => (partner ?? one) === one).map(partnerOf),
    configuration: (partner) => `id: ${partner}\nmatch:\n  subscriptionKeySha256: [secret]\nstage: shadow\n`,
    take: async (actor, partner, step) => {
      const look = step.dryRun === true ? 'look at ' : ''
      calls.push(`${look}${step.kind} ${partner} by ${actor.name}: ${step.reason}`)
      const message = `${partner}: canary with 20 % of the units on V3 -> shadow (revision 8).`
      return { isDone: true, text: message, json: { result: 'done', message } }
    },
    sideOf: async (partner, school) => ({ text: `V3 serves ${school} of ${partner}.` }),
    history: async ({ partner }) =>
      ['acme', 'zenith', null]
        .map((of, at) => ({
          ...{ entry: 3 - at, by: 'olga', partner: of, action: 'set' as const },
          at: new Date(NOW_MS - at * 86_400_000).toISOString(),
          from: { stage: 'shadow' as const, percent: 0 },
          to: { stage: 'canary' as const, percent: 20, always: [], never: ['3003'] },
          ...{ revision: 7 - at, reason: MARKUP },
        }))
        .filter((entry) => (partner ?? entry.partner) === entry.partner),
    recordAction: async (action, by, what) => {
      calls.push(`note ${action} by ${by}: ${what}`)
    },
  }
}

/** Returns what the page "Try it" shows for a batch that contains hostile markup. */
const triedBatch = (file: Buffer): TriedBatch => ({
  bytes: file.byteLength,
  isSound: true,
  isBody: true,
  records: [
    { part: 1, contentId: '1', v2: '{"Comment":"late"}', v3: '{"Qualifier":{"Comment":"late"}}' },
    { part: 2, contentId: MARKUP, v2: undefined, v3: undefined },
  ],
  findings: [
    {
      severity: 'error',
      code: 'ADP_FIELD',
      part: 2,
      offset: 12,
      message: 'Learner must be a guid.',
      remedy: 'Correct it.',
    },
    {
      severity: 'note',
      code: 'quotedBoundary',
      message: 'The boundary is quoted.',
      remedy: 'Nothing is needed.',
    },
  ],
  reply: {
    head: 'HTTP/1.1 200 OK\r\n',
    parts: [
      { ifAccepted: `HTTP/1.1 201 Created\r\n\r\n${MARKUP} <id>`, otherwise: 'HTTP/1.1 400 Bad Request' },
    ],
    ...{ end: '--b--', v3Id: '<id>' },
  },
})

const explained = (position: number, isRevealed: boolean): Explained =>
  position === 7
    ? { notes: ['ADP_FIELD: Learner must be a guid.'], fields: [], reply: undefined }
    : {
        notes: [
          'The rules shown are those of the current settings of the partner, which may have changed since the record was posted.',
        ],
        fields: [
          { path: 'ExternalID', from: undefined, rule: 'all zero', value: '"00000000"', isMasked: false },
          {
            ...{ path: 'Qualifier/Comment', from: 'Comment', rule: 'as it is', isMasked: !isRevealed },
            value: isRevealed ? JSON.stringify(`dentist ${MARKUP}`) : 'a text',
          },
        ],
        reply: { status: 201, fields: [] },
      }

/** Returns console settings, with defaults for members that are not given. */
export const settingsOf = (given: Partial<ConsoleOptions['settings']>): ConsoleOptions['settings'] => ({
  ...{ host: '127.0.0.1', hosts: [], trustedProxies: [] },
  ...given,
})

/** Starts a console on a real socket. Stubs in place of the adapter record the calls of the console. */
export async function startConsole(options: Partial<ConsoleOptions> = {}, ports: Partial<ConsolePorts> = {}) {
  const calls: string[] = []
  const errors: unknown[] = []
  let faults: readonly unknown[] = []
  /** The arguments of each query for one batch. */
  const asked: unknown[] = []
  let broken: Error | undefined
  const sample = createSampleData(calls)
  const batch: typeof sample.batch = async (...given) => {
    asked.push(given)
    if (broken !== undefined) throw broken
    return sample.batch(...given)
  }
  const overview: typeof sample.overview = async (...given) => {
    if (broken !== undefined) throw broken
    return sample.overview(...given)
  }
  const data = { ...sample, overview, batch }
  const { server, createLink } = createConsole({
    settings: settingsOf({}),
    operators: () => people,
    systemUser: 'alice',
    nowMs: Date.now,
    onError: (error) => errors.push(error),
    ports: {
      data,
      health: () => ({ journal: 'available', stagesAgeMs: 300 }),
      stages: createSampleStages(calls),
      comparison: sampleComparison,
      tryBatch: async (partner, file) => {
        calls.push(`try ${file.byteLength} of ${partner}`)
        return triedBatch(file)
      },
      sandbox: {
        readFaults: async () => faults,
        setFaults: async (wanted) => {
          calls.push(`set faults ${JSON.stringify(wanted)}`)
          faults = wanted
        },
      },
      explain: async (_batch, position, isRevealed) => explained(position, isRevealed),
      ...ports,
    },
    ...options,
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ask = async (path: string, { form, ...given }: Asked = {}): Promise<Answered> => {
    const reply = await request(`${url}${path}`, {
      method: form === undefined ? 'GET' : 'POST',
      ...given,
      headers: {
        accept: 'text/html',
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...given.headers,
      },
      ...(form === undefined ? {} : { body: new URLSearchParams(form).toString() }),
    })
    return { status: reply.statusCode, headers: reply.headers, text: await reply.body.text() }
  }
  /** Signs in, and returns the session cookie and a function that sends requests with this cookie. */
  const enter = async (name: string) => {
    const { headers } = await ask('/login', { form: { token: tokenOf(name) } })
    const cookie = String(headers['set-cookie']).split(';')[0] ?? ''
    const as = (path: string, asked: Asked = {}) =>
      ask(path, { ...asked, headers: { cookie, ...asked.headers } })
    return { cookie, ask: as }
  }
  return {
    ...{ url, calls, errors, asked, ask, enter, createLink },
    breakData: (error: Error) => (broken = error),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type RunningConsole = Awaited<ReturnType<typeof startConsole>>

interface Asked {
  readonly form?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH' | 'OPTIONS' | 'HEAD' | 'TRACE'
  readonly body?: string
}

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}
