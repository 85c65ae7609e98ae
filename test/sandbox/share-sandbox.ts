import { afterAll, beforeAll, expect } from 'vitest'
import { request } from 'undici'
import { createSandbox } from '../../src/sandbox/index.ts'
import type { Sandbox } from '../../src/sandbox/index.ts'
import { jsonBody, testNow } from './start-sandbox.ts'

/** The permissions of service.md 1.1 and 1.2. */
const domains = [
  'Learner.Indentifier',
  'Learner.Personal',
  'Learner.Cultural',
  'Learner.Registration',
  'Learner.Groups',
  'Learner.Medical',
  'Learner.Dietary',
  'Learner.Transport',
  'Learner.Welfares',
  'Learner.Grants',
  'Learner.ContactDetails',
  'Learner.SEN',
  'Learner.SEN.Review',
  'Learner.SEN.EHCP',
  'Attendance',
]

/** The two headers of every call (service.md 5). */
export const credentials = (token: string): Record<string, string> => ({
  'Ocp-Apim-Subscription-Key': 'sandbox',
  Authorization: `bearer ${token}`,
})

/** Rows of a collection. */
export type Rows = readonly Record<string, unknown>[]

/**
 * One sandbox for all tests of a file, and a client of it. Tokens: `only-<domain>`, `all-but-<domain>`, and `sandbox`, which
 * holds everything and is the default.
 */
export function shareSandbox() {
  const tokens = domains.flatMap((domain) => [
    { token: `only-${domain}`, domains: [domain] },
    { token: `all-but-${domain}`, domains: domains.filter((other) => other !== domain) },
  ])
  let sandbox: Sandbox
  let url = ''
  beforeAll(async () => {
    sandbox = createSandbox({ now: testNow, tokens })
    url = (await sandbox.listen()).url
  })
  afterAll(() => sandbox.close())

  const call = async (
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    token = 'sandbox',
    body?: string,
    headers: Record<string, string> = jsonBody,
  ): Promise<{ status: number; text: string }> => {
    const reply = await request(`${url}${path}`, {
      method,
      headers: { ...credentials(token), ...headers },
      ...(body === undefined ? {} : { body }),
    })
    return { status: reply.statusCode, text: await reply.body.text() }
  }
  const read = async (path: string, token?: string): Promise<Record<string, unknown>> => {
    const { status, text } = await call('GET', path, token)
    expect([path, status]).toEqual([path, 200])
    return JSON.parse(text) as Record<string, unknown>
  }
  const list = async (path: string, token?: string): Promise<Rows> =>
    (await read(path, token))['value'] as Rows
  return { url: () => url, call, read, list }
}
