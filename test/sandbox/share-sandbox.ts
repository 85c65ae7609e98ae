import { beforeAll, expect } from 'vitest'
import { atEndOfFile } from '../support/end-of-file.ts'
import { jsonBody, startSandbox } from './start-sandbox.ts'

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

/** Returns the two headers that every call needs (service.md 5). */
export const credentials = (token: string): Record<string, string> => ({
  'Ocp-Apim-Subscription-Key': 'sandbox',
  Authorization: `bearer ${token}`,
})

export type Rows = readonly Record<string, unknown>[]

/**
 * Starts one sandbox for all tests of a file and creates a client. The sandbox accepts the tokens `only-<domain>`, `all-but-<domain>` and
 * `sandbox` (the default), which has all permissions.
 */
export function shareSandbox() {
  const tokens = domains.flatMap((domain) => [
    { token: `only-${domain}`, domains: [domain] },
    { token: `all-but-${domain}`, domains: domains.filter((other) => other !== domain) },
  ])
  const onEnd = atEndOfFile()
  let started: Awaited<ReturnType<typeof startSandbox>>
  beforeAll(async () => {
    started = await startSandbox({ tokens }, onEnd)
  })

  const call = async (
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    token = 'sandbox',
    body: string | null = null,
    headers: Record<string, string> = jsonBody,
  ): Promise<{ status: number; text: string }> => {
    const sent = { headers: { ...credentials(token), ...headers }, body }
    const { status, text } = await started.request(method, path, sent)
    return { status, text }
  }
  const read = async (path: string, token?: string): Promise<Record<string, unknown>> => {
    const { status, text } = await call('GET', path, token)
    expect([path, status]).toEqual([path, 200])
    return JSON.parse(text) as Record<string, unknown>
  }
  const list = async (path: string, token?: string): Promise<Rows> =>
    (await read(path, token))['value'] as Rows
  return { url: () => started.url, call, read, list }
}
