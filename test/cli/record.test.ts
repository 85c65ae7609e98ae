import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'

import { describe, expect, it } from 'vitest'

import { listRecordings, readRecording } from '../../src/compare/recording/recording-files.ts'
import { contentTypeOfMarked, markedBody, markedReply, markers } from '../compare/recording/exchanges.ts'
import { startFaces } from '../e2e/support/compared-faces.ts'
import { request } from 'undici'
import { makeFolder } from '../journal/open-sqlite.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { batchOf, batchPath } from '../support/batch-request.ts'
import { RawClient } from '../support/raw-client.ts'
import { startUpstream } from '../support/scripted-upstream.ts'
import { textBelow } from '../support/text-below.ts'
import { ownFile } from './own-file.ts'
import { startCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const KEY = '0c'.repeat(32)

/** Starts a V2 service whose reply to a batch is compressed and sets a cookie. */
const startV2 = () =>
  startUpstream((_seen, response) => {
    response.writeHead(200, 'Fine', [
      ['Content-Type', 'multipart/mixed; boundary=batchresponse_1'],
      ['Content-Encoding', 'gzip'],
      ['Set-Cookie', `a=${markers.cookie}`],
      ['set-cookie', 'b=c'],
    ] as unknown as string[])
    response.end(gzipSync(markedReply()))
  })

const shownIn = (text: string): readonly string[] =>
  Object.values(markers).filter((marker) => text.toLowerCase().includes(marker.toLowerCase()))

async function post(url: string) {
  const reply = await request(`${url}/tenant/V2/Attendance/$batch?subscription-key=${markers.query}`, {
    method: 'POST',
    headers: {
      'content-type': contentTypeOfMarked,
      authorization: `Bearer ${markers.bearer}`,
      'Ocp-Apim-Subscription-Key': markers.key,
    },
    body: markedBody(),
  })
  return {
    status: reply.statusCode,
    headers: reply.headers,
    body: Buffer.from(await reply.body.arrayBuffer()),
  }
}

describe('the command record', () => {
  it('relays bytes unchanged, prints no personal data, and writes files that the command check reads and the command send refuses', async () => {
    const [folder, v2, file] = [await makeFolder(), await startV2(), await ownFile('key', KEY)]
    const [to, sealed] = [join(folder, 'kept'), ['--key', `file:${file}`]]
    const cli = startCli(['record', '--v2', `${v2.url}/base`, '--out', to, '--port', '0', ...sealed])
    const [url = ''] = /http:\S+/.exec(await cli.until(/record ready http:\S+\n/)) ?? []
    const reply = await post(url)
    expect([reply.status, gunzipSync(reply.body).equals(markedReply())]).toEqual([200, true])
    expect(reply.headers['set-cookie']).toEqual([`a=${markers.cookie}`, 'b=c'])
    expect(v2.seen).toMatchObject([
      {
        url: `/base/tenant/V2/Attendance/$batch?subscription-key=${markers.query}`,
        body: markedBody().toString('latin1'),
        rawHeaders: expect.arrayContaining(['authorization', `Bearer ${markers.bearer}`]) as unknown,
      },
    ])
    // `record` relays other requests, but does not record them.
    await request(`${url}/anything`).then(({ body }) => body.dump())
    expect(await cli.stop()).toBe(0)
    const { stdout, stderr } = await cli.ended()
    expect([stdout.split('\n').slice(1), stderr]).toEqual([[`1 of 1 exchange(s) recorded in ${to}`, ''], ''])
    expect(shownIn((await textBelow(folder)) + stdout + stderr)).toEqual([])

    const [name = ''] = await readdir(to)
    const { request: sent, reply: got, target } = await readRecording(join(to, name), Buffer.from(KEY, 'hex'))
    expect([sent.body.length, got.body.length]).toEqual([markedBody().length, markedReply().length])
    expect([got.status, got.reason, target]).toEqual([
      200,
      'Fine',
      expect.stringMatching(/^\/V2\/Attendance\//),
    ])
    const recorded = join(to, name, 'request.http.sealed')
    for (const path of [recorded, to]) {
      const { status, stderr: why } = await runCommand(['check', path])
      expect([status, why]).toEqual([2, expect.stringMatching(/Recordings are encrypted/)])
      const checked = await runCommand(['check', path, ...sealed])
      expect([checked.status, checked.stdout, shownIn(checked.stdout)]).toEqual([0, expect.stringMatching(/1 record/), []]) // prettier-ignore
    }
    const send = await runCommand(['send', recorded, '--to', 'https://v2.example'])
    expect([send.status, send.stderr]).toEqual([2, expect.stringMatching(/is a recording.*Nothing was sent/)])
  })

  it('records writes and reads of each kind, and leaves out an exchange without a complete reply', async () => {
    const { v2Url, mark } = await startFaces()
    const [to, file] = [join(await makeFolder(), 'kept'), await ownFile('key', KEY)]
    const cli = startCli(['record', '--v2', v2Url, '--out', to, '--port', '0', '--key', `file:${file}`])
    const [url = ''] = /http:\S+/.exec(await cli.until(/record ready http:\S+\n/)) ?? []
    const marks = '/x/V2/Attendance/AttendanceRecords'
    const send = async (path: string, headers: Record<string, string> = {}, body?: string | Buffer) => {
      const method = body === undefined ? 'GET' : 'POST'
      const all = { ...sandboxHeaders, ...headers }
      const reply = await request(`${url}${path}`, { method, headers: all, body: body ?? null })
      return { status: reply.statusCode, text: await reply.body.text() }
    }
    const batch = batchOf([mark(0), mark(1, { MinutesLate: 5, Comment: 'bus' })])
    const zipped = { ...batch.headers, 'Content-Encoding': 'gzip' }
    expect((await send(batchPath, zipped, gzipSync(batch.body))).status).toBe(200)
    const one = await send(marks, { 'Content-Type': 'application/json' }, JSON.stringify(mark(2)))
    const { ExternalID } = JSON.parse(one.text) as { ExternalID: string }
    const filter =
      'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-03T00:00:00Z'
    for (const path of [
      `${marks}?$filter=${encodeURIComponent(filter)}`,
      `${marks}(${ExternalID})`,
      '/x/V2/LearnerRegistations?expand=Enrolments',
    ])
      expect((await send(path)).status).toBe(200)
    // This client disconnects before its request is complete.
    const client = await RawClient.open(Number(new URL(url).port))
    client.send(
      `POST ${batchPath} HTTP/1.1\r\nHost: x\r\nOcp-Apim-Subscription-Key: k\r\nContent-Length: 1000\r\n\r\nhalf`,
    )
    client.socket.destroy()
    expect(await cli.stop()).toBe(0)
    expect((await cli.ended()).stdout).toContain('5 of 5 exchange(s) recorded')
    const found = await Promise.all(
      (await listRecordings(to)).map((own) => readRecording(own, Buffer.from(KEY, 'hex'))),
    )
    expect(found.map(({ kind, reply }) => [kind, reply.status])).toEqual([
      ['batch', 200],
      ['record', 201],
      ['readFilter', 200],
      ['readKey', 200],
      ['registrations', 200],
    ])
    const [first, second] = found
    expect(first?.request.body.toString()).toBe(batch.body)
    expect(first?.reply.body.toString()).toContain('HTTP/1.1 201 Created')
    expect(second?.reply.body.toString()).toBe(one.text)
  })

  it.each([
    [['--v2', 'http://127.0.0.1:9'], /--key <source>' not specified/],
    [['--key', 'env:X'], /--v2 <url>' not specified/],
    [['--v2', 'http://127.0.0.1:9', '--key', KEY], /never the key itself/],
    [['--v2', 'http://127.0.0.1:9', '--key', 'env:NOT_SET_ANYWHERE'], /is not set/],
    [['--v2', 'http://user:pass@127.0.0.1:9', '--key', 'env:X'], /without user/],
    [['--v2', 'http://127.0.0.1:9', '--key', 'env:X', '--for', '10'], /must be a time such as/],
    [['--v2', 'http://127.0.0.1:9', '--key', 'env:X', '--max-size', '10'], /must be a size such as/],
  ])('refuses the flags %j', async (args, text) => {
    const folder = await makeFolder()
    const { status, stderr } = await runCommand(['record', '--out', folder, ...args])
    expect([status, stderr]).toEqual([2, expect.stringMatching(text)])
    expect(stderr).not.toContain(KEY)
  })
})
