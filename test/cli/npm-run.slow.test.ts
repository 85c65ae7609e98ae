import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { promisify } from 'node:util'

import { expect, it, onTestFinished } from 'vitest'

import { echoOf, startUpstream } from '../support/scripted-upstream.ts'
import { batchOf, batchPath, flatRecords } from '../support/batch-request.ts'
import { clientHeaders } from '../support/start-adapter.ts'

const serve = (v3: string): string[] => ['run', '-s', 'markbridge', '--', 'serve', '--v3', v3, '--port', '0', '--journal', 'none'] // prettier-ignore
const demo = ['start', '-s', '--', '--port', '0', '--sandbox-port', '0', '--console', '0']

/**
 * Starts npm in a process group of its own. `untilPrinted` resolves when the output matches, and `ended` when npm and all processes that
 * npm started have ended.
 */
function startNpm(args: readonly string[]) {
  const child = spawn('npm', args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  onTestFinished(() => {
    try {
      process.kill(-(child.pid ?? NaN), 'SIGKILL')
    } catch {
      // The group has already ended.
    }
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (printed += chunk.toString('utf8')))
  return {
    child,
    // The pipes of npm end only when the adapter has ended too, because the adapter inherits them.
    ended: Promise.all([once(child.stdout, 'end'), once(child.stderr, 'end')]),
    printed: () => printed,
    untilPrinted: async (pattern: RegExp): Promise<string> => {
      for (;;) {
        const found = pattern.exec(printed)?.[1]
        if (found !== undefined) return found
        await Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data')])
      }
    },
  }
}

it('the adapter stops after its last reply when npm run gets SIGTERM', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
  const upstream = await startUpstream(async (seen, response) => {
    await released
    response.writeHead(201, { 'Content-Type': 'application/json' }).end(echoOf(seen))
  })
  const npm = startNpm(serve(upstream.url))
  const url = await npm.untilPrinted(/adapter ready (\S+)\n/)
  const { headers, body } = batchOf(flatRecords(1))
  const post = request(`${url}${batchPath}`, { method: 'POST', headers: { ...clientHeaders, ...headers } })
  post.end(body)
  await upstream.arrived(1)
  npm.child.kill('SIGTERM')
  await once(npm.child, 'exit')
  release(undefined)
  const [reply] = (await once(post, 'response')) as [{ statusCode: number; resume(): void }]
  reply.resume()
  expect(reply.statusCode).toBe(200)
  await npm.ended
  expect(npm.printed()).toContain('"msg":"stopped"')
})

it('the demo stops when npm start gets SIGTERM', async () => {
  const npm = startNpm(demo)
  await npm.untilPrinted(/(127\.0\.0\.1:\d+)/)
  npm.child.kill('SIGTERM')
  await npm.ended
})

it.each([
  ['v20.20.2', 'Node.js v20.20.2 is older than 24.15. '],
  ['v24.14.9', 'Node.js v24.14.9 is older than 24.15. '],
  ['v24.15.0', ''],
  ['v25.0.0', ''],
])('npm ci on Node.js %s prints only the line "%s"', async (version, line) => {
  const env = { ...process.env, npm_config_user_agent: `npm/11.0.0 node/${version} linux x64` }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['test/package/note-node.ts'], {
    env,
  })
  expect([stdout.slice(0, line.length), stdout.split('\n').length, stderr]).toEqual([
    line,
    line === '' ? 1 : 2,
    '',
  ])
})
