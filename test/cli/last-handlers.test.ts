import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { request } from 'undici'
import { expect, it, onTestFinished } from 'vitest'

import { batchOf, batchPath, flatRecord } from '../support/batch-request.ts'
import { echoRecord, postsOf, startUpstream } from '../support/scripted-upstream.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { startCli } from './run-cli.ts'

/** Writes a module that runs the statement from `setImmediate`, outside of all handlers, when a write to V3 is sent. */
async function breaking(folder: string, statement: string): Promise<string> {
  const file = join(folder, 'break.mjs')
  await writeFile(
    file,
    `import channel from 'node:diagnostics_channel'
     channel.subscribe('undici:client:sendHeaders', ({ request }) => {
       if (request.method === 'POST') setImmediate(() => { ${statement} })
     })`,
  )
  return `--import ${pathToFileURL(file).href}`
}

it.each([
  ['a rejection', "Promise.reject(new Error('mark of learner zoe'))"],
  ['an exception', "throw new Error('mark of learner zoe')"],
  ['a rejection with a value', "Promise.reject('mark of learner zoe')"],
])(
  'serve keeps serving after %s outside of a handler, and fails only the write that caused it',
  async (_what, statement) => {
    const upstream = await startUpstream((seen, response) =>
      seen.method === 'POST' ? undefined : echoRecord(seen, response),
    )
    const folder = await makeFolder()
    const args = ['serve', '--v3', upstream.url, '--port', '0', '--journal', `sqlite:${folder}/journal.db`]
    const cli = startCli(args, { NODE_OPTIONS: await breaking(folder, statement) })
    onTestFinished(async () => {
      await cli.stop('SIGKILL')
    })
    const [, url = ''] = /ready (\S+)\n/.exec(await cli.until(/ready \S+\n/)) ?? []
    const { headers, body } = batchOf([flatRecord(1)])
    const own = { 'Ocp-Apim-Subscription-Key': 'k', Authorization: 'bearer t' }
    const reply = await request(`${url}${batchPath}`, {
      method: 'POST',
      headers: { ...headers, ...own },
      body,
    })

    expect([reply.statusCode, await reply.body.json()]).toMatchObject([
      504,
      { error: { code: 'ADP_OUTCOME_UNKNOWN' } },
    ])
    expect((await request(`${url}/healthz`)).statusCode).toBe(200)
    await cli.logged({ msg: 'internal error' })
    expect(cli.errors()).not.toContain('zoe')
    await upstream.arrived(1)
    // The adapter has posted the record once, because recovery reads the record back before it posts the record again.
    expect(postsOf(upstream.seen)).toHaveLength(1)
    await cli.untilErrors(/"records recovered"|"recovery failed"/)
  },
)
