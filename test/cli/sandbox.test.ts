import { request } from 'undici'
import { expect, test } from 'vitest'

import { ownFile } from './own-file.ts'
import { startCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

test('sandbox reads callers and options from a file, and flags override the file', async () => {
  const path = await ownFile(
    'sandbox.yaml',
    `
port: 1
keys: [second]
tokens:
  - { token: reader, domains: [Attendance] }
clients:
  - { id: app, secret: { env: APP_SECRET }, organisation: "1234", domains: [Learner.Indentifier] }
v2: { keys: [old-key] }
`,
  )
  const args = ['sandbox', '--options', path, '--port', '0', '--v2-port', '0']
  const cli = startCli(args, { APP_SECRET: 'own-secret' })
  const printed = await cli.until(/sandbox v2 ready \S+\n/)
  const [, url = '', v2 = ''] = /^sandbox ready (\S+)\nsandbox v2 ready (\S+)\n$/.exec(printed) ?? []
  const get = async (target: string, token: string, key = 'second', base = url) => {
    const headers = { 'Ocp-Apim-Subscription-Key': key, Authorization: `bearer ${token}` }
    const { statusCode, body } = await request(`${base}${target}`, { headers })
    return { status: statusCode, text: await body.text() }
  }
  const marks = await get(
    '/Attendance/V3/AttendanceRecords?$filter=AttendableEventStart%20eq%202026-03-02T09:00:00Z&$top=1',
    'reader',
  )
  expect(marks.status).toBe(200)
  expect((await get('/V3/LearnerIdentifiers', 'reader')).status).toBe(403)
  for (const [base, status] of [
    [v2, 200],
    [url, 401],
  ] as const)
    expect((await get('/V2/Attendance/$metadata', 'sandbox', 'old-key', base)).status).toBe(status)
  const { body } = await request(`${url}/connect/token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'grant_type=client_credentials&client_id=app&client_secret=own-secret&scope=s&acr_values=orgselected:1234',
  })
  const { access_token: token } = (await body.json()) as { access_token: string }
  expect((await get('/V3/LearnerIdentifiers?$top=1', token)).status).toBe(200)
  expect((await get('/V3/LearnerMedicals?$top=1', token)).status).toBe(403)
  expect(await cli.stop()).toBe(0)
})

test('sandbox lists all faults of a file with their places, and quotes no value', async () => {
  const path = await ownFile(
    'bad.yaml',
    `prot: 4011
scale: classes
tokens:
  - { token: hidden-token, domains: [Learner.Identifier] }
  - { token: x, domain: [Attendance] }
clients:
  - id: app
    secret: { env: NO_SUCH_VARIABLE }
`,
  )
  const { status, stdout, stderr } = await runCommand(['sandbox', '--options', path])
  expect([status, stdout]).toEqual([2, ''])
  expect(stderr.split('\n').slice(1, -1)).toEqual([
    '  prot (line 1, column 1): is not a key of the configuration; did you mean port?',
    '  scale (line 2, column 1): Invalid option: expected one of "class"|"school"',
    '  tokens[0].domains[0] (line 4, column 38): must be a permission of the service; did you mean Learner.Indentifier?',
    '  tokens[1].domains (line 5, column 5): is required',
    '  tokens[1].domain (line 5, column 17): is not a key of the configuration; did you mean domains?',
    '  clients[0].secret (line 8, column 5): the environment variable NO_SUCH_VARIABLE is not set',
  ])
  expect(stderr).not.toContain('hidden-token')
})

test('sandbox reports an invalid value in the file even if a flag overrides the value', async () => {
  const path = await ownFile('over.yaml', 'seed: 1\nport: 99999\nseed: 2\nnow: noon\n')
  const { status, stderr } = await runCommand(['sandbox', '--options', path, '--port', '0'])
  expect([status, ...stderr.split('\n').slice(1, -1)]).toEqual([
    2,
    '  port (line 2, column 1): Too big: expected number to be <=65535',
    '  line 3, column 1: not valid YAML: duplicate key',
    '  now (line 4, column 1): must be a date and time with offset',
  ])
})
