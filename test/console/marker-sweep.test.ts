import { readFileSync } from 'node:fs'

import { request } from 'undici'
import { describe, expect, onTestFinished } from 'vitest'

import { filesBelow, findMarkers, type Output, textOutput } from '../e2e/support/find-markers.ts'
import { readTables } from '../e2e/support/read-tables.ts'
import { guid, readBatchReply } from '../support/batch-request.ts'
import { eachDatabase } from '../support/each-database.ts'
import { HUSH, serveConsole, type ServedConsole, tokenOf } from './support/serve-console.ts'

/** Requests a page as HTML and as JSON. */
async function ask({ ask: as }: ServedConsole, path: string, form?: Readonly<Record<string, string>>) {
  const forms = await Promise.all(['text/html', 'application/json'].map((accept) => as('olga', path, form, accept))) // prettier-ignore
  return { statuses: forms.map(({ status }) => status), ...textOutput(`${path} ${JSON.stringify(form)}`, forms.map(({ text }) => text).join('\n')) } // prettier-ignore
}

/** Signs in as a browser does, first with a wrong token. Returns the response to the wrong token, and the session cookie. */
async function signIn({ url }: ServedConsole) {
  const enter = (token: string) =>
    request(`${url}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ token }).toString(),
    })
  const [wrong, right] = [await enter(`${tokenOf('olga')}x`), await enter(tokenOf('olga'))]
  await right.body.dump()
  const cookie = /=([\w-]+);/.exec(String(right.headers['set-cookie']))?.[1] ?? ''
  expect(cookie).toHaveLength(43)
  return { cookie, refused: textOutput('refused login', await wrong.body.text()) }
}

describe.each(eachDatabase())('the console over a journal in %s', (name, { test }) => {
  test('shows, logs and stores no personal data and no credential, except a value that an operator revealed', async (url) => {
    const served = await serveConsole(onTestFinished, name === 'SQLite' ? undefined : url)
    const { mark, postMarks, setFaults } = served
    const register = [mark(), mark(), mark(), mark({ SchoolAttendanceCode: guid(5) })]
    const reply = await postMarks([...register, `{"Learner":"${HUSH}`])
    const ids = readBatchReply(reply).flatMap(({ status, json }) => (status === 201 ? String((json as { ExternalID: unknown }).ExternalID) : [])) // prettier-ignore
    await setFaults({ kind: 'reset', apply: true, method: 'POST', face: 'V3' }, { kind: 'status', status: 503, headers: { 'Retry-After': '100' }, method: 'GET', face: 'V3' }) // prettier-ignore
    const lost = mark()
    await postMarks([lost])
    await served.leaveBehind()
    await served.isIndexed(4)
    const { cookie, refused } = await signIn(served)
    const { Learner = '', AttendableEvent = '', SchoolAttendanceCode = '' } = register[0] ?? {}
    const markers = [
      ...[HUSH, 'HUSHKEY', 'HUSHTOKEN', cookie, AttendableEvent, SchoolAttendanceCode, ...ids],
      ...[...register, lost].map((one) => String(one.Learner)),
    ]
    expect(ids).toHaveLength(3)

    // Searches for ids, which no response may contain.
    const found: Output[] = [refused]
    for (const id of [Learner, AttendableEvent, ids[0] ?? '']) {
      const answer = await served.ask('olga', '/batches', { text: id })
      const { to } = JSON.parse(answer.text) as { to: string }
      const shown = await ask(served, to)
      expect(shown.bytes.toString()).toContain('"position":0')
      found.push(textOutput('where a search leads', to), shown)
    }
    found.push(
      await ask(served, '/batches', { text: HUSH }),
      await ask(served, `/batches?learner=${Learner}`),
    )
    const tried = readFileSync('fixtures/class-register/body.txt', 'utf8').replaceAll('late', HUSH)
    expect(await served.tryFile(Buffer.from(tried))).toContain(HUSH)
    // The pages with data of the journal. The sandbox page is not among them, because it shows the ids of invented learners.
    const paths = [
      ...['/', '/?range=live', '/?range=day', '/?range=week', '/partners', '/partners/acme', '/batches', '/batches?contentId=1'],
      ...['/batches/1', '/batches/2', '/batches/3', '/batches/4', '/letters', '/letters?kind=parked', '/audit', '/login'],
      ...[1, 2, 3, 4, 5].map((part) => `/batches/1/${part}`),
      ...['/batches/2/1', '/batches/3/1', '/batches/4/1'],
    ] // prettier-ignore
    const sweep = async (): Promise<Output[]> => {
      const shown = await Promise.all(paths.map((path) => ask(served, path)))
      expect(shown.flatMap(({ statuses }) => statuses).filter((status) => status !== 200)).toEqual([])
      const { text } = await served.adapter.request('GET', '/metrics')
      const logs = [...served.adapter.log, ...served.log].join('')
      const tables = name === 'SQLite' ? [] : (await readTables(url)).outputs
      return [...found, ...shown, textOutput('metrics', text), textOutput('logs', logs), ...tables, ...filesBelow(served.folder)] // prettier-ignore
    }
    const outputs = await sweep()
    expect(outputs.map((one) => one.name)).toContain(name === 'SQLite' ? 'journal.db.console' : 'table console_records') // prettier-ignore
    expect(findMarkers(outputs, markers)).toEqual([])

    const shown = await ask(served, '/batches/1/1', { reason: 'a parent asks' })
    expect(shown.bytes.toString()).toContain(Learner)
    expect((await served.ask('olga', '/audit')).text).toContain('acme: batch 1, part 1: a parent asks')
    expect(findMarkers(await sweep(), markers)).toEqual([])
  })
})
