import { expect, onTestFinished } from 'vitest'
import { Pool } from 'undici'
import supertest from 'supertest'
import { createSandbox } from '../../src/sandbox/index.ts'
import type { SandboxOptions } from '../../src/sandbox/index.ts'
import type { OnEnd } from '../support/end-of-file.ts'

/** The clock of the tests: a Wednesday in term, after the fixed weeks. */
export const testNow = '2026-06-10T10:00:00Z'

/** The credentials that hold everything. */
export const sandboxHeaders = {
  'Ocp-Apim-Subscription-Key': 'sandbox',
  Authorization: 'Bearer sandbox',
}

/** A sandbox on a port of its own, closed at the end of the test or at that of the file, and clients for it: `client` sends no credentials. */
export async function startSandbox(options: SandboxOptions = {}, onEnd: OnEnd = onTestFinished) {
  const sandbox = createSandbox({ now: testNow, ...options })
  const { url, port } = await sandbox.listen()
  const pool = new Pool(url, { connections: 4 })
  onEnd(async () => {
    await pool.destroy()
    await sandbox.close()
  })
  const request = async (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    { headers = {}, body = null }: { headers?: Record<string, string>; body?: string | Buffer | null } = {},
  ) => {
    const all: Record<string, string> = { ...sandboxHeaders, ...headers }
    const reply = await pool.request({ method, path, headers: all, body })
    return { status: reply.statusCode, headers: reply.headers, text: await reply.body.text() }
  }
  const json = async (
    ...parameters: Parameters<typeof request>
  ): Promise<{ status: number; body: unknown }> => {
    const { status, text } = await request(...parameters)
    return { status, body: text === '' ? undefined : JSON.parse(text) }
  }
  return { sandbox, url, port, pool, client: supertest(url), request, json }
}

/** Headers of a JSON body. */
export const jsonBody = { 'Content-Type': 'application/json' }

/** The first ids of the default seed: the same on every machine and every day. */
export const fixed = {
  learner: '41dba12f-bcce-470b-8ce4-b260ffb62649',
  otherLearner: '809661f9-0a62-439a-a62d-9891bb705550',
  /** Monday 2 March 2026. */
  morning: '29cd4133-b991-43c6-9913-1e96862672ec',
  afternoon: '9c651743-08fc-4306-8fcf-172aacef3d6c',
  /** `/` */
  present: 'ac00c159-62ce-44b8-ace6-c75caf7505e6',
  zero: '00000000-0000-0000-0000-000000000000',
  /** No id of the sandbox. */
  unknown: '11111111-1111-4111-8111-111111111111',
}

/** Stands for some text in an expected value. */
export const anyText: unknown = expect.any(String)

/** Stands for an array that holds at least these items. */
export const arrayWith = (...items: unknown[]): unknown => expect.arrayContaining(items)
