import { Pool } from 'undici'
import { describe, expect, onTestFinished, test as plainTest, vi } from 'vitest'

import { sandboxRegister } from '../e2e/support/sandbox-register.ts'
import { fixed, startSandbox } from '../sandbox/start-sandbox.ts'
import { batchOf, batchPath, flatRecord, readBatchReply } from '../support/batch-request.ts'
import {
  type Balancer,
  haproxy,
  missingBalancer,
  nginx,
  startBalancer,
} from '../support/load-balancers/start-balancer.ts'
import { RawClient, requestText } from '../support/raw-client.ts'
import { echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { clientHeaders, startAdapter } from '../support/start-adapter.ts'

const operational = ['metrics', 'healthz', 'readyz']

/** Percent-encodes each character of a word. */
function escapeAll(word: string): string {
  return word.replaceAll(/./g, (letter) => `%${letter.charCodeAt(0).toString(16)}`)
}

/** Returns targets that some server could read as the path `/<word>`. */
function spellingsOf(word: string): string[] {
  const escaped = escapeAll(word)
  const first = `${escapeAll(word.slice(0, 1))}${word.slice(1)}`
  const upper = word.toUpperCase()
  const paths = [
    `/${word}`, `/${upper}`, `/${upper.slice(0, 1)}${word.slice(1)}`, `/${word}/`, `/${upper}/`, `//${word}`, `///${word}`, `/${word}//`, `//${upper}//`,
    // These spellings are percent-encoded, some of them several times, or have look-alike characters.
    `/${first}`, `/${escaped}`, `/${escaped.toUpperCase()}`, `/${escapeAll(upper)}/`, `/${escaped.replaceAll('%', '%25')}`, `/${first.replace('%', '%2525')}`, `/%2f${word}`, `/%2F${upper}`, `/%5c${word}`, `\\${word}`, `/\\${word}`,
    `/%ef%bd%8d${word.slice(1)}`, `/${word}%e2%80%8b`,
    // These spellings have dot segments.
    `/./${word}`, `/.//${word}`, `/%2e/${word}`, `/x/../${word}`, `/x/%2e%2e/${word}`, `/x/.%2E/${upper}`, `/x/..%2f${word}`, `/x%2f..%2f${word}`, `/../${word}`, `/x/%252e%252e/${word}`, `/${word}/.`, `/${word}/./`, `/${word}/x/..`, `/${word}/%2e`, `/V3/../${upper}`, `/x/..\\${word}`,
    // These spellings have parameters, spaces, dots and characters that end a path.
    `/..;x/${word}`, `/x/..;/${word}`, `/x/..;a=b/${upper}`, `/;/${word}`, `/.;/${word}`, `/${word};`, `/${word};x`, `/${word};x/`, `/${word}%3bx`, `/${word}%20`, `/%20${word}`, `/x/..%20/${word}`, `/${word}%09`, `/${word}.`, `/${word}%2e`, `/${word}%00`, `/${word}%00.json`, `/${word}%0a`, `/${word}%0d%0a`,
    `/${word}?`, `/${word}?x=1`, `/${upper}?/V3/x`, `/${word}#`, `/${word}#/V3/x`, `/${word}%23`, `/${word}%3f`, `/${word}%3fx`, `/${word}&x`, `/${word},x`, `/${word}:8080`, `/${word}$`, `/${word}*`, `/${word}~`,
  ] // prettier-ignore
  const absolute = [`/${word}`, `/${upper}/`, `//${word}`, `/./${word}`, `/${first}`]
  return [
    ...paths,
    ...absolute.map((path) => `http://markbridge.example${path}`),
    `HTTP://127.0.0.1/${word}`,
    word,
  ]
}

/** Headers by which some servers and frameworks replace the path or the method. */
const overrides = ['X-Original-URL: /', 'X-Rewrite-URL: /', 'X-Forwarded-Uri: /', 'X-HTTP-Method-Override: GET\r\nX-Original-Path: /'] // prettier-ignore

/** Starts the adapter with the most permissive configuration, behind the load balancer. */
async function startBehind(balancer: Balancer) {
  const upstream = await startUpstream((seen, response) =>
    seen.url.startsWith('/V3/AttendanceRecords') || seen.method === 'POST'
      ? echoRecord(seen, response)
      : replyWith(200, 'from V3', { 'Content-Type': 'text/plain' })(seen, response),
  )
  const listen = { port: 0, metrics: 'any', trustedProxies: ['127.0.0.1'] }
  const adapter = await startAdapter(upstream.url, { listen, passThrough: { allow: ['/**'] } })
  const { port } = await startBalancer(balancer, adapter.port)
  return { upstream, adapter, port, pool: openPool(port) }
}

function openPool(port: number): Pool {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 4 })
  onTestFinished(() => pool.destroy())
  return pool
}

async function rawReply(port: number, start: string, lines = ''): Promise<string> {
  const client = await RawClient.open(port)
  client.send(requestText(start, `${lines}Connection: close\r\n`))
  return client.untilClosed()
}

const statusOf = (reply: string): number => Number(/^HTTP\/1\.\d (\d{3})/.exec(reply)?.[1])

describe.each([nginx, haproxy])('deploy/$file in front of the adapter', (balancer) => {
  const test = plainTest.skipIf(missingBalancer(balancer) !== undefined)

  test('lets no spelling of an operational path reach the adapter or V3', async () => {
    const { upstream, adapter, port } = await startBehind(balancer)
    // Requests that bypass the load balancer reach these paths.
    for (const word of operational) expect((await adapter.request('GET', `/${word}`)).status).toBe(200)
    const reached: unknown[] = []
    const ask = async (start: string, lines?: string): Promise<void> => {
      const reply = await rawReply(port, start, lines)
      if (![400, 404, 405].includes(statusOf(reply))) reached.push([start, lines, reply.slice(0, 60)])
    }
    for (const word of operational) {
      for (const target of spellingsOf(word)) await ask(`GET ${target}`)
      for (const method of ['HEAD', 'POST', 'OPTIONS']) await ask(`${method} /${word}`)
    }
    expect(reached).toEqual([])
    expect(upstream.seen).toEqual([])
  })

  test('ignores headers that would change the path of a request', async () => {
    const { upstream, port } = await startBehind(balancer)
    for (const header of overrides) {
      const reply = await rawReply(port, 'GET /V3/x', `${header}metrics\r\n`)
      expect([header, statusOf(reply), reply.includes('from V3')]).toEqual([header, 200, true])
    }
    expect(upstream.seen.map(({ url }) => url)).toEqual(overrides.map(() => '/V3/x'))
  })

  test('refuses operational paths, and forwards other paths that look similar', async () => {
    const upstream = await startUpstream(replyWith(200, 'reached'))
    const { port } = await startBalancer(balancer, upstream.port)
    const own = operational.flatMap((word) => [`/${word}`, `/${word.toUpperCase()}`, `/${word}/`, `//${word}`, `/./${word}`, `/${escapeAll(word)}`, `/%2e/${word}`, `/${word};x`, `/${word}.`, `/${word}%20`, `/${word}?x`]) // prettier-ignore
    for (const path of own) {
      expect([path, statusOf(await rawReply(port, `GET ${path}`))]).toEqual([path, 404])
    }
    const others = ['/V3/metrics', '/metricsx', '/healthzone/V2/Attendance/$batch', '/readyz-school/V3/LearnerIdentifiers'] // prettier-ignore
    for (const path of others) expect(await rawReply(port, `GET ${path}`)).toContain('reached')
    // Leaves out the health checks of HAProxy, which request /readyz.
    const seen = upstream.seen.filter(({ headers }) => headers.host === 'adapter.test')
    expect(seen.map(({ url }) => url)).toEqual(others)
  })

  test('logs requests and failures without queries, ids and headers', async () => {
    const upstream = await startUpstream(replyWith(200, 'reached'))
    const { port, logged } = await startBalancer(balancer, upstream.port)
    const secret = '4d2f9a61-0c1e-4f0b-9d53-7f3a51b6c0de'
    const header = `Referer: http://x/?${secret}\r\nUser-Agent: ${secret}\r\n`
    const ask = (target: string): Promise<string> => rawReply(port, `GET ${target}`, header)
    const targets = [
      `/V2/Attendance/AttendanceRecords?$filter=Learner%20eq%20${secret}`,
      `/V3/LearnerIdentifiers(${secret})/x`,
      `/V3/LearnerIdentifiers%28${secret}%29`,
      `/V3/LearnerIdentifiers%2528${secret}%2529`,
      `http://markbridge.example/V2/x?Learner=${secret}`,
      `/metrics?${secret}`,
      // HAProxy refuses this request before it has read the path.
      `/V2/x?${secret} HTTP/9.9 GET /`,
    ]
    for (const target of targets) await ask(target)
    await upstream.close()
    expect(statusOf(await ask(`/V2/last?${secret}`))).toBeGreaterThanOrEqual(502)
    await vi.waitFor(() => expect(logged()).toMatch(/\/V2\/last.* 50\d |50\d .*\/V2\/last/))
    expect(logged()).toContain('/V2/Attendance/AttendanceRecords')
    expect(logged()).not.toContain(secret)
  })

  test('forwards batches and reads of V2, and requests to V3', async () => {
    const sandbox = await startSandbox()
    const listen = { port: 0, trustedProxies: ['127.0.0.1'] }
    const adapter = await startAdapter(sandbox.url, { listen })
    const pool = openPool((await startBalancer(balancer, adapter.port)).port)
    const register = await sandboxRegister(sandbox, 30)
    const { batch, headers, learners } = register
    const posted = await pool.request({
      method: 'POST',
      path: batchPath,
      headers: { ...batch.headers, ...headers },
      body: batch.body,
    })
    const parts = readBatchReply({ headers: posted.headers, text: await posted.body.text() })
    expect(parts.map(({ status }) => status)).toEqual(learners.map(() => 201))
    expect(await register.written()).toEqual(learners)

    const get = async (path: string): Promise<unknown> => {
      const reply = await pool.request({
        method: 'GET',
        path,
        headers: { ...headers, Host: 'markbridge.example:8443' },
      })
      return [reply.statusCode, await reply.body.json()]
    }
    const filter = `$filter=Learner%20eq%20${fixed.learner}`
    expect(await get(`/sp-api/V2/Attendance/AttendanceRecords?${filter}&$top=2`)).toMatchObject([
      200,
      {
        // deploy/haproxy.cfg always sets X-Forwarded-Proto to https.
        '@odata.context': expect.stringMatching(
          /^https?:\/\/markbridge\.example:8443\/sp-api\/V2\/Attendance\/\$metadata#AttendanceRecords$/,
        ) as unknown,
        value: [{ Learner: fixed.learner }, { Learner: fixed.learner }],
      },
    ])
    expect(await get('/Learner/odata/V3/LearnerIdentifiers?$top=3')).toMatchObject([
      200,
      { value: [{}, {}, {}] },
    ])
  })

  test('forwards a batch of 4 MiB and a next link of 50 KB', async () => {
    const { upstream, pool } = await startBehind(balancer)
    const records = Array.from({ length: 400 }, (_, n) => flatRecord(n, { Comment: 'c'.repeat(10_000) }))
    const batch = batchOf(records)
    const posted = await pool.request({
      method: 'POST',
      path: batchPath,
      headers: { ...batch.headers, ...clientHeaders },
      body: batch.body,
    })
    const parts = readBatchReply({ headers: posted.headers, text: await posted.body.text() })
    expect(parts.map(({ status }) => status)).toEqual(records.map(() => 201))
    expect(upstream.seen).toHaveLength(records.length)

    // The adapter receives the whole link and refuses it, because the adapter did not create the link.
    const link = `/V2/Attendance/AttendanceRecords?$skiptoken=${'x'.repeat(50_000)}`
    const read = await pool.request({ method: 'GET', path: link, headers: clientHeaders })
    expect([read.statusCode, await read.body.text()]).toEqual([400, expect.stringContaining('ADP_')])
  })
})
