import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'

import { describe, expect, it } from 'vitest'

import {
  contentTypeOfMarked,
  credentials,
  markedBody,
  markedReply,
  markers,
} from '../compare/recording/exchanges.ts'
import { request } from 'undici'
import { makeFolder } from '../journal/open-sqlite.ts'
import { startUpstream } from '../support/scripted-upstream.ts'
import { textBelow } from '../support/text-below.ts'
import { ownFile } from './own-file.ts'
import { startCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const KEY = '0c'.repeat(32)

/** V2 as it answers a batch: compressed, with a cookie. */
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

describe('record', () => {
  /** Records one batch in this form, and checks that it went to V2 and back as it is and that no value is shown anywhere. */
  async function recordOne(form: readonly string[]): Promise<{ folder: string; to: string }> {
    const [folder, v2] = [await makeFolder(), await startV2()]
    const to = join(folder, 'kept')
    const cli = startCli(['record', '--v2', `${v2.url}/base`, '--out', to, '--port', '0', ...form])
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
    // What is neither marks nor registrations passes and is not kept.
    await request(`${url}/anything`).then(({ body }) => body.dump())
    expect(await cli.stop()).toBe(0)
    const { stdout, stderr } = await cli.ended()
    expect([stdout.split('\n').slice(1), stderr]).toEqual([[`1 of 1 exchange(s) recorded in ${to}`, ''], ''])
    expect(shownIn((await textBelow(folder)) + stdout + stderr)).toEqual([])
    return { folder, to }
  }

  it('relays to V2 as it is and shows no value anywhere', async () => {
    await recordOne(['--pseudonyms'])
  })

  it('encrypts so too, and writes what is encrypted again as pseudonyms, which check reads', async () => {
    const file = await ownFile('key', KEY)
    const { folder, to: sealed } = await recordOne(['--key', `file:${file}`])
    const shown = join(folder, 'shown')
    const again = (...args: string[]) =>
      runCommand(['record', '--recording', sealed, '--out', shown, '--pseudonyms', ...args])
    expect((await again()).stderr).toMatch(/is encrypted\. Name its key with --key/)
    expect(await again('--key', `file:${file}`, '--json')).toMatchObject({ status: 0, stderr: '' })
    const [name = ''] = await readdir(shown)
    const recorded = join(shown, name, 'request.http')
    const { status, stdout } = await runCommand(['check', recorded])
    expect([status, shownIn(stdout), shownIn(await textBelow(shown))]).toEqual([0, [], []])
    const send = await runCommand(['send', recorded, '--to', 'https://v2.example'])
    expect([send.status, send.stderr]).toEqual([2, expect.stringMatching(/is a recording.*once more/)])
  })

  it.each([
    [['--v2', 'http://127.0.0.1:9'], /never written in clear text: choose one of --key/],
    [['--v2', 'http://127.0.0.1:9', '--pseudonyms', '--key', 'env:X'], /choose one of/],
    [['--pseudonyms'], /--v2 <url> for traffic, or --recording/],
    [['--v2', 'http://127.0.0.1:9', '--key', KEY], /never given itself/],
    [['--v2', 'http://127.0.0.1:9', '--key', 'env:NOT_SET_ANYWHERE'], /is not set, empty or cannot be read/],
    [['--v2', 'http://user:pass@127.0.0.1:9', '--pseudonyms'], /without user/],
    [['--v2', 'http://127.0.0.1:9', '--pseudonyms', '--for', '10'], /must be a time such as/],
    [['--v2', 'http://127.0.0.1:9', '--pseudonyms', '--max-size', '10'], /must be a size such as/],
  ])('refuses %j', async (args, text) => {
    const folder = await makeFolder()
    const { status, stderr } = await runCommand(['record', '--out', folder, ...args])
    expect([status, stderr]).toEqual([2, expect.stringMatching(text)])
    expect(stderr).not.toContain(KEY)
    expect(credentials.length).toBeGreaterThan(0)
  })
})
