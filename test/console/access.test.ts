import { createHash } from 'node:crypto'
import { connect } from 'node:net'

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { manyClassesRun } from '../compare/report/sample-runs.ts'
import { RUN, sampleComparison } from './support/sample-comparison.ts'
import { people, type RunningConsole, settingsOf, startConsole, tokenOf } from './support/start-console.ts'

let running: RunningConsole
beforeAll(async () => {
  running = await startConsole()
})
afterAll(() => running.close())

const json = { accept: 'application/json' }
const names = people.map(({ name }) => name)

/**
 * The HTTP status that each person gets. Olga and otto are operators, anna is an approver, and vera is a viewer. Zoe (operator) and zack
 * (viewer) may see only the partner zenith.
 */
const all = { olga: 200, otto: 200, anna: 200, vera: 200, zoe: 200, zack: 200, nobody: 401 }
const ofAcme = { ...all, zoe: 404, zack: 404 }
const nowhere = { ...Object.fromEntries(names.map((name) => [name, 404])), nobody: 401 }
const nobodyMay = { olga: 403, otto: 403, anna: 403, vera: 403, zoe: 403, zack: 403, nobody: 401 }
const operators = { ...all, anna: 403, vera: 403, zoe: 400, zack: 403 }

describe('the console', () => {
  test.each([
    ['/', all],
    ['/?range=week', all],
    ['/partners', all],
    ['/partners/acme', ofAcme],
    ['/partners/zenith', all],
    ['/partners/none', nowhere],
    ['/batches', all],
    ['/batches/42', ofAcme],
    ['/batches/41', all],
    ['/batches/9', nowhere],
    ['/batches/42/1', ofAcme],
    ['/batches/41/1', all],
    ['/batches/42/31', nowhere],
    ['/comparison', all],
    ['/comparison/live:acme', ofAcme],
    ['/comparison/live:zenith', all],
    ['/comparison/live:zenith/report', all],
    ['/comparison/live:acme/report', ofAcme],
    [`/comparison/${RUN}`, ofAcme],
    [`/comparison/${RUN}/report`, ofAcme],
    ['/comparison/run-20260327-160000-0000', nowhere],
    ['/comparison/live:none', nowhere],
    ['/comparison/..%2F..%2Fpackage', nowhere],
    ['/try', all],
    ['/sandbox', ofAcme],
    ['/letters', all],
    ['/letters?kind=parked', all],
    ['/audit', all],
  ])(
    'answers GET %s with the status that the role and the partner of the person require',
    async (path, expected) => {
      const statuses = await Promise.all(
        [...names, 'nobody'].map(async (name) => [
          name,
          (await running.ask(path, { headers: { ...json, ...bearer(name) } })).status,
        ]),
      )
      expect(Object.fromEntries(statuses)).toEqual(expected)
    },
  )

  test.each([
    // For a step the console itself checks only the partner. `StageDesk`, which is a stub here, would check the role.
    ['/partners/acme', { step: 'back', reason: 'test' }, { ...ofAcme }],
    ['/partners/zenith', { step: 'back', reason: 'test' }, all],
    ['/batches', { text: '42' }, { ...all, zoe: 409, zack: 409 }],
    ['/sandbox', { switch: 'off' }, { ...nobodyMay, olga: 200, otto: 200, zoe: 404 }],
    ['/batches/42/1', { reason: 'test' }, { ...nobodyMay, olga: 200, zack: 404 }],
    ['/batches/41/1', { reason: 'test' }, { ...nobodyMay, olga: 200, zack: 200 }],
    ['/letters?kind=deadLetters', { record: '42.7', reason: 'test' }, operators],
    ['/letters?kind=parked', { record: '42.5', reason: 'test' }, operators],
  ])(
    'answers POST %s %j with the status that the role and the partner of the person require',
    async (path, form, expected) => {
      const statuses = await Promise.all(
        [...names, 'nobody'].map(async (name) => [
          name,
          (await running.ask(path, { form, headers: { ...json, ...bearer(name) } })).status,
        ]),
      )
      expect(Object.fromEntries(statuses)).toEqual(expected)
    },
  )

  test.each([
    '/',
    '/partners',
    '/batches',
    '/batches?contentId=5',
    '/letters',
    '/comparison',
    '/try',
    '/audit',
  ])('shows no data of other partners on %s to a person who may see one partner', async (path) => {
    for (const accept of ['text/html', 'application/json'])
      for (const name of ['zoe', 'zack']) {
        const { text } = await running.ask(path, { headers: { accept, ...bearer(name) } })
        expect(text).not.toContain('acme')
        expect(text).not.toContain(RUN)
      }
  })

  test('gives the same response for an unknown partner and for a partner that the person may not see', async () => {
    const [one, other] = await Promise.all(
      ['/partners/acme', '/partners/none'].map((path) => running.ask(path, { headers: bearer('zoe') })),
    )
    expect(one?.text).toBe(other?.text)
  })
})

const bearer = (name: string): { authorization?: string } =>
  name === 'nobody' ? {} : { authorization: `Bearer ${tokenOf(name)}` }

describe('a session of the console', () => {
  test('begins at the login, which redirects to the page that the person requested', async () => {
    const { status, headers } = await running.ask('/partners/acme?x=1')
    expect([status, headers['location']]).toEqual([303, '/login?to=%2Fpartners%2Facme%3Fx%3D1'])
    const entered = await running.ask(String(headers['location']), { form: { token: tokenOf('vera') } })
    expect([entered.status, entered.headers['location']]).toEqual([303, '/partners/acme?x=1'])
    expect(entered.headers['set-cookie']).toMatch(
      /^markbridge_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    )
  })

  test.each(['//evil.test/', 'https://evil.test/', '/\\evil.test', '/..//evil.test', 'javascript:alert(1)'])(
    'never begins with a redirect from the login page to the foreign address %s',
    async (to) => {
      const { headers } = await running.ask(`/login?to=${encodeURIComponent(to)}`, {
        form: { token: tokenOf('vera') },
      })
      expect(headers['location']).toMatch(/^\/(?!\/)/)
      expect(new URL(String(headers['location']), 'http://console').host).toBe('console')
    },
  )

  test('ends on the server when the person signs out', async () => {
    const olga = await running.enter('olga')
    expect((await olga.ask('/logout', { form: {} })).status).toBe(303)
    expect((await olga.ask('/partners')).status).toBe(303)
  })

  test('always has the current role of the person, and ends when the token of the person is replaced', async () => {
    let list = people
    const other = await startConsole({ operators: () => list })
    const otto = await other.enter('otto')
    expect((await otto.ask('/partners/acme')).text).toContain('otto · operator')
    list = people.map((one) => (one.name === 'otto' ? { ...one, role: 'viewer' as const } : one))
    expect((await otto.ask('/partners/acme')).text).toContain('otto · viewer')
    list = list.map((one) => ({
      ...one,
      tokenSha256: createHash('sha256').update(`new ${one.name}`).digest('hex'),
    }))
    expect((await otto.ask('/partners/acme')).status).toBe(303)
    await other.close()
  })

  test('ends after 12 hours', async () => {
    let nowMs = Date.now()
    const other = await startConsole({ nowMs: () => nowMs })
    const otto = await other.enter('otto')
    nowMs += 12 * 3_600_000 - 1
    expect((await otto.ask('/')).status).toBe(200)
    nowMs += 1
    expect((await otto.ask('/')).status).toBe(303)
    await other.close()
  })

  test('can begin with a login link for one use if the configuration names no operators', async () => {
    const other = await startConsole({ operators: () => [] })
    const link = other.createLink() ?? ''
    const entered = await other.ask(link)
    const cookie = String(entered.headers['set-cookie']).split(';')[0] ?? ''
    expect([entered.status, entered.headers['location']]).toEqual([303, '/'])
    expect((await other.ask('/', { headers: { cookie } })).text).toContain('os:alice · operator')
    expect((await other.ask(link)).status).toBe(401)
    expect((await other.ask('/enter?link=')).status).toBe(401)
    expect((await other.ask('/login', { form: { token: tokenOf('olga') } })).status).toBe(401)
    await other.close()
    expect(running.createLink()).toBeUndefined()
  })

  test('is not accepted if the request contains its cookie twice', async () => {
    const { cookie } = await running.enter('olga')
    expect(
      (await running.ask('/', { headers: { cookie: `${cookie}; markbridge_console=other` } })).status,
    ).toBe(303)
  })
})

describe('an authenticating proxy in front of the console', () => {
  const trusting = (trustedProxies: readonly string[]) =>
    settingsOf({ trustedProxies: [...trustedProxies], identity: { header: 'X-Forwarded-User' } })
  const named = (name: string) => ({ headers: { 'x-forwarded-user': name } })

  test('identifies the operator by a header, but does not let the operator send forms from another site', async () => {
    const other = await startConsole({ settings: trusting(['127.0.0.1']) })
    const page = await other.ask('/partners/acme', named('anna'))
    expect(page.text).toContain('anna · approver')
    const form = { step: 'back', reason: 'x' }
    const headers = { ...named('anna').headers, origin: 'http://evil.test' }
    expect((await other.ask('/partners/acme', { headers, form })).status).toBe(403)
    expect((await other.ask('/partners/acme', { ...named('anna'), form })).status).toBe(303)
    expect((await other.ask('/partners', named('mallory'))).status).toBe(303)
    await other.close()
  })

  test('is trusted only if its address is configured', async () => {
    const other = await startConsole({ settings: trusting(['10.0.0.0/8']) })
    expect((await other.ask('/partners', named('olga'))).status).toBe(303)
    expect((await running.ask('/partners', named('olga'))).status).toBe(303)
    await other.close()
  })

  test.each([
    [['127.0.0.1'], true],
    [['10.0.0.0/8'], false],
    [[], false],
  ])(
    'makes the console set a Secure cookie only if the configuration trusts the proxy (trusted: %j)',
    async (trustedProxies, isSecure) => {
      const other = await startConsole({ settings: settingsOf({ trustedProxies }) })
      const { headers } = await other.ask('/login', {
        form: { token: tokenOf('vera') },
        headers: { 'x-forwarded-proto': 'https' },
      })
      expect(String(headers['set-cookie']).includes('; Secure')).toBe(isSecure)
      await other.close()
    },
  )
})

describe('a form of the console', () => {
  test('is refused without a session cookie, even if the URL of the page contains a user and a password', async () => {
    const before = running.calls.length
    const headers = { authorization: `Basic ${Buffer.from('a:b').toString('base64')}` }
    const form = { step: 'back', reason: 'forged' }
    expect((await running.ask('/partners/acme', { form, headers })).status).toBe(401)
    expect(running.calls.slice(before)).toEqual([])
  })

  test.each([
    { origin: 'http://evil.test' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('is refused if it comes from another site: %j', async (headers) => {
    const olga = await running.enter('olga')
    const before = running.calls.length
    const form = { step: 'back', reason: 'x' }
    expect((await olga.ask('/partners/acme', { form, headers })).status).toBe(403)
    expect(running.calls.slice(before)).toEqual([])
    expect((await running.ask('/login', { form: { token: tokenOf('olga') }, headers })).status).toBe(403)
  })

  test('is refused if its reason is missing, only white space, or longer than 500 characters', async () => {
    const olga = await running.enter('olga')
    const before = running.calls.length
    for (const reason of ['', '  ', 'x'.repeat(501)])
      expect((await olga.ask('/partners/acme', { form: { step: 'approve', reason } })).status).toBe(400)
    expect(
      (await olga.ask('/partners/acme', { form: { step: 'back', reason: 'x'.repeat(501) } })).status,
    ).toBe(400)
    expect((await olga.ask('/letters', { form: { record: '42.7' } })).status).toBe(400)
    expect(running.calls.slice(before)).toEqual([])
  })

  test('takes no step if it asks only for advice, and approves no step without a reason', async () => {
    const olga = await running.enter('olga')
    const before = running.calls.length
    expect((await olga.ask('/partners/acme', { form: { step: 'back', dryRun: '1' } })).status).toBe(303)
    expect((await olga.ask('/partners/acme', { form: { step: 'approve', dryRun: '1' } })).status).toBe(400)
    expect(running.calls.slice(before)).toEqual(['look at back acme by olga: '])
  })

  test('takes a partner back to V2 even without a reason', async () => {
    const olga = await running.enter('olga')
    const before = running.calls.length
    expect((await olga.ask('/partners/acme', { form: { step: 'back', reason: ' ' } })).status).toBe(303)
    expect(running.calls.slice(before)).toEqual(['back acme by olga: '])
  })

  test.each([
    ['otto', ['approve', 'back']],
    ['anna', ['approve', 'back']],
    ['vera', []],
  ])('offers %s only the steps %j, which the role allows', async (name, expected) => {
    const { text } = await running.ask('/partners/acme', { headers: bearer(name) })
    expect([...text.matchAll(/id="(\w+)-reason"/g)].map(([, id]) => id)).toEqual(expected)
    expect(text.includes('There is no step that the role viewer may take.')).toBe(name === 'vera')
  })

  test('writes to the audit trail before its change, and shows the result only on the next page', async () => {
    const olga = await running.enter('olga')
    const before = running.calls.length
    const done = await olga.ask('/letters?kind=deadLetters', {
      form: { record: '42.7', reason: 'corrected' },
    })
    expect([done.status, done.headers['location']]).toEqual([303, '/letters?kind=deadLetters'])
    expect(running.calls.slice(before)).toEqual([
      'note clear by olga: acme: batch 42, parts 8: corrected',
      'dismiss 42 7',
    ])
    expect((await olga.ask('/letters')).text).toContain('1 dead letter cleared.')
    expect((await olga.ask('/letters')).text).not.toContain('1 dead letter cleared.')
  })

  test('is refused if it names records that are not in the list', async () => {
    const olga = await running.enter('olga')
    expect((await olga.ask('/letters', { form: { record: '42.1', reason: 'x' } })).status).toBe(400)
  })
})

test('the partner page of the console shows the state of each condition, and says which side serves a school', async () => {
  const olga = await running.enter('olga')
  const { text } = await olga.ask('/partners/acme?school=3001')
  const rows = [...text.matchAll(/<span class="badge \w+">(pass|fail|waiting)<\/span>/g)].map(
    ([, state]) => state,
  )
  expect(rows).toEqual(['fail', 'waiting', 'pass'])
  expect(text).toContain('312 of 1,000')
  expect(text).toContain('V3 serves 3001 of acme.')
  const offered = async (name: string) =>
    (await running.ask('/partners/zenith', { headers: bearer(name) })).text
  expect(await offered('olga')).toContain('If you take the step now')
  expect(await offered('anna')).not.toContain('If you take')
})

test('the audit page of the console shows the always and never lists of each setting', async () => {
  const olga = await running.enter('olga')
  expect((await olga.ask('/audit')).text).toContain('canary 20 %, 1 never')
})

describe('the search box of the console', () => {
  const learner = '8c0ee5f6-1a05-4a51-9f5c-1f8b2f7a6f01'

  test.each([
    ['42', '/batches?batch=42'],
    [learner, '/batches?learner=1a2b3c4d5e6f7'],
    ['batch_36522ad7', '/batches?boundary=batch_36522ad7'],
    ['36522ad7', '/batches?boundary=batch_36522ad7'],
    ['zenith', '/batches?partner=zenith'],
    ['30', '/batches?contentId=30'],
    ['2026-11-26', '/batches?from=2026-11-26&until=2026-11-27'],
    ['', '/batches?'],
    ['Ann', '/batches'],
  ])('redirects the text %j to %s, so that no URL contains the id of a learner', async (text, to) => {
    const { status, headers } = await (await running.enter('olga')).ask('/batches', { form: { text } })
    expect([status, headers['location']]).toEqual([303, to])
  })

  test('finds no data of another partner, and never repeats a text that it did not find', async () => {
    const zack = await running.enter('zack')
    const { headers } = await zack.ask('/batches', { form: { text: 'acme' } })
    expect(headers['location']).toBe('/batches')
    expect((await zack.ask('/batches')).text).not.toContain('acme')
    expect((await zack.ask(`/batches?learner=${learner}`)).status).toBe(400)
  })
})

describe('the list of dead letters of the console', () => {
  test('shows each cause once with its remedy, and can clear all records of a cause with one action', async () => {
    const olga = await running.enter('olga')
    const { text } = await olga.ask('/letters')
    expect(text.split('Correct SchoolAttendanceCode')).toHaveLength(2)
    const before = running.calls.length
    const form = { group: 'ATT_VAL_3', all: '', reason: 'corrected' }
    expect((await olga.ask('/letters', { form })).status).toBe(303)
    expect(running.calls.slice(before)).toEqual([
      'note clear by olga: acme: batch 42, parts 8: corrected',
      'dismiss 42 7',
    ])
  })

  test('offers no action for records that only their clients can send again', async () => {
    const olga = await running.enter('olga')
    const form = { group: 'unavailable', all: '', reason: 'x' }
    expect((await olga.ask('/letters?kind=notApplied', { form })).status).toBe(400)
    expect((await olga.ask('/letters?kind=notApplied')).text).not.toContain(
      'form method="post" aria-label="Clear',
    )
  })
})

test('the record page of the console masks values until a permitted person gives a reason, which goes into the audit trail', async () => {
  const olga = await running.enter('olga')
  expect((await olga.ask('/batches/42/1')).text).not.toContain('dentist')
  const before = running.calls.length
  const { text } = await olga.ask('/batches/42/1', { form: { reason: 'a parent asks' } })
  expect(text).toContain('dentist')
  expect(running.calls.slice(before)).toEqual(['note reveal by olga: acme: batch 42, part 1: a parent asks'])
  expect((await olga.ask('/batches/42/1')).text).not.toContain('dentist')
  expect((await (await running.enter('otto')).ask('/batches/42/1')).text).not.toContain('Show the values')
})

test('the comparison page of the console shows only the largest classes of differences if a run has very many', async () => {
  const many = { ...manyClassesRun(), run: RUN }
  const other = await startConsole({}, { comparison: { ...sampleComparison, run: async () => many } })
  const { text } = await other.ask(`/comparison/${RUN}`, { headers: { ...json, ...bearer('olga') } })
  const { classes, outcome } = JSON.parse(text) as { classes: { count: number }[]; outcome: string }
  expect([outcome, classes.length, classes[0]?.count]).toEqual(['differs', 500, 1_000])
  const olga = await other.enter('olga')
  expect((await olga.ask(`/comparison/${RUN}`)).text).toContain(
    'markbridge compare report prints all classes',
  )
  await other.close()
})

describe('the sandbox page of the console', () => {
  const on = async (): Promise<unknown> => {
    const { text } = await running.ask('/sandbox', { headers: { ...json, ...bearer('vera') } })
    return (JSON.parse(text) as { switch: unknown }).switch
  }

  test('shows the active fault, and writes to the audit trail before it sets another fault', async () => {
    const olga = await running.enter('olga')
    expect(await on()).toBe('off')
    const before = running.calls.length
    expect((await olga.ask('/sandbox', { form: { switch: 'blind' } })).status).toBe(303)
    expect(await on()).toBe('blind')
    expect(running.calls.slice(before, before + 2)).toEqual([
      'note sandbox by olga: Faults: Replies to writes are lost, and reads fail.',
      'set faults [{"kind":"reset","apply":true,"method":"POST","face":"V3"},{"kind":"status","status":503,"face":"V3","method":"GET"}]',
    ])
    await olga.ask('/sandbox', { form: { switch: 'off' } })
    expect(await on()).toBe('off')
    expect((await olga.ask('/sandbox', { form: { switch: 'none' } })).status).toBe(400)
  })
})

describe('the page "Try it" of the console', () => {
  const upload = (fields: Readonly<Record<string, string>>, file: string, name = 'batch.txt') => {
    const parts = Object.entries(fields).map(([field, value]) => `--form-0\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`) // prettier-ignore
    const body = `${parts.join('')}--form-0\r\nContent-Disposition: form-data; name="batch"; filename="${name}"\r\n\r\n${file}\r\n--form-0--\r\n`
    return {
      method: 'POST' as const,
      body,
      headers: { 'content-type': 'multipart/form-data; boundary=form-0' },
    }
  }

  test('takes a pasted batch in place of a file', async () => {
    const olga = await running.enter('olga')
    const before = running.calls.length
    const { body, headers, method } = upload({ partner: 'acme', text: 'x'.repeat(9_000) }, '', '')
    const { status } = await olga.ask('/try', { method, body, headers: { ...headers, cookie: olga.cookie } })
    expect([status, running.calls.slice(before)]).toEqual([200, ['try 9000 of acme']])
  })

  test('shows the findings of a batch as text, and stores nothing', async () => {
    const olga = await running.enter('olga')
    const { body, headers, method } = upload({ partner: 'acme' }, 'hello <b>world</b>')
    const { status, text } = await olga.ask('/try', {
      method,
      body,
      headers: { ...headers, cookie: olga.cookie },
    })
    expect(status).toBe(200)
    expect(text).toContain('hello &lt;b>wor<mark>l</mark>d&lt;/b>')
    expect(text).not.toMatch(/<img|onerror="/)
  })

  test.each([
    ['for an unknown partner', { partner: 'none' }, 'x', 'b.txt', 400],
    ['without a file', { partner: 'acme' }, '', '', 400],
    [
      'with very many parts',
      { partner: 'acme' },
      'x\r\n--form-0\r\nContent-Disposition: form-data; name="y"\r\n\r\n1'.repeat(25),
      'b.txt',
      400,
    ],
    ['that is too large', { partner: 'acme' }, 'x'.repeat(4_210_689), 'b.txt', 413],
  ])('refuses an upload %s', async (_, fields, file, name, expected) => {
    const olga = await running.enter('olga')
    const before = running.calls.length
    const { body, headers, method } = upload(fields, file, name)
    const { status } = await olga.ask('/try', { method, body, headers: { ...headers, cookie: olga.cookie } })
    expect([status, running.calls.slice(before)]).toEqual([expected, []])
  })

  test.each([3, 10, 30, 80, 150])('refuses an upload whose last %i bytes are missing', async (count) => {
    const { body, headers, method } = upload({ partner: 'acme' }, 'a file of some length')
    const cut = { method, body: body.slice(0, -count), headers: { ...headers, ...bearer('olga') } }
    expect((await running.ask('/try', cut)).status).toBe(400)
    expect((await running.ask('/', { headers: bearer('olga') })).status).toBe(200)
  })

  test('refuses a partner that the person may not see', async () => {
    const { body, headers, method } = upload({ partner: 'acme' }, 'x')
    expect(
      (await running.ask('/try', { method, body, headers: { ...headers, ...bearer('zoe') } })).status,
    ).toBe(400)
  })
})

describe('the HTTP interface of the console', () => {
  test('forbids frames, inline scripts and caches in every response', async () => {
    const olga = await running.enter('olga')
    for (const path of ['/', '/partners/acme', '/nowhere', '/login']) {
      const { headers } = await olga.ask(path)
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'content-security-policy':
          "default-src 'none';style-src 'self';script-src 'self';img-src 'self';connect-src 'self';form-action 'self';frame-ancestors 'none';base-uri 'none'",
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'same-origin',
      })
      expect(headers['x-powered-by']).toBeUndefined()
    }
  })

  test.each(['evil.test', 'evil.test:8081', '127.0.0.1.evil.test', 'console.test'])(
    'refuses the Host %s, which is not an address of the console',
    async (host) => {
      const olga = await running.enter('olga')
      expect((await olga.ask('/', { headers: { cookie: olga.cookie, host } })).status).toBe(400)
    },
  )

  test('accepts a Host that console.hosts contains', async () => {
    const other = await startConsole({ settings: settingsOf({ hosts: ['console.test'] }) })
    expect((await other.ask('/login', { headers: { host: 'Console.test' } })).status).toBe(200)
    await other.close()
  })

  test.each(['PUT', 'DELETE', 'PATCH', 'TRACE'] as const)('has no page for the method %s', async (method) => {
    expect((await running.ask('/', { method, headers: bearer('olga') })).status).toBe(404)
  })
})

test.each([
  '/partners/..%2f..%2fetc%2fpasswd',
  '/partners/%2e%2e/audit',
  '/assets/../../package.json',
  '/assets/%2e%2e/%2e%2e/package.json',
  '/assets/0/console.js',
  '//partners',
  '/Partners',
  '/partners/',
  '/partners/acme/..;/zenith',
  '/batches/0x2a',
  '/batches/42abc',
  '/batches/-1',
  '/batches/1e3',
  '/constructor',
  '/__proto__',
])('the console answers the unknown path %s with 404', async (path) => {
  const { status } = await rawGet(path, bearer('olga').authorization ?? '')
  expect(status).toBe(404)
})

test.each(['/partners/%', '/partners/%E0%A4%A'])(
  'the console answers the malformed path %s with 400',
  async (path) => {
    expect((await rawGet(path, bearer('olga').authorization ?? '')).status).toBe(400)
  },
)

/** Sends a path without normalising it. */
function rawGet(path: string, authorization: string): Promise<{ readonly status: number }> {
  const { port, host } = new URL(running.url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.end(
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${authorization}\r\nConnection: close\r\n\r\n`,
      )
    })
    let text = ''
    socket.on('data', (chunk) => (text += String(chunk)))
    socket.on('end', () => resolve({ status: Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]) }))
    socket.on('error', reject)
  })
}

describe('stored HTML markup', () => {
  test.each([
    '/',
    '/partners',
    '/partners/acme',
    '/batches',
    '/batches/42',
    '/letters',
    '/letters?kind=parked',
    '/letters?kind=notApplied',
    '/letters?kind=deadLetters&reason=ATT_VAL_3',
    '/batches/42/1',
    '/sandbox',
    '/comparison',
    `/comparison/${RUN}`,
    `/comparison/${RUN}/report`,
    '/audit',
  ])('is shown as text on the console page %s', async (path) => {
    const olga = await running.enter('olga')
    const { text } = await olga.ask(path)
    expect(text.replaceAll(/<script type="module" src="[^"]*"><\/script>/g, '')).not.toMatch(
      /<script|<img|onerror="/,
    )
  })
})

describe('a client with very many login attempts', () => {
  test('is slowed down without affecting other addresses or sessions', async () => {
    const other = await startConsole()
    const olga = await other.enter('olga')
    const tries = await Promise.all(
      Array.from(
        { length: 60 },
        async () => (await other.ask('/login', { form: { token: 'guess' } })).status,
      ),
    )
    expect(tries.filter((status) => status === 401)).toHaveLength(10)
    expect(tries.filter((status) => status === 429)).toHaveLength(50)
    const late = await other.ask('/login', { form: { token: tokenOf('olga') } })
    expect([late.status, Number(late.headers['retry-after']) > 0]).toEqual([429, true])
    expect((await other.ask('/', { headers: { ...json, authorization: 'Bearer guess' } })).status).toBe(429)
    expect((await olga.ask('/')).status).toBe(200)
    await other.close()
  })

  test('leaves file descriptors for other clients even if it opens many connections', async () => {
    const other = await startConsole()
    const { port } = new URL(other.url)
    const sockets = Array.from({ length: 300 }, () => connect(Number(port), '127.0.0.1').resume())
    await vi.waitFor(() => expect(sockets.filter(({ closed }) => closed)).toHaveLength(44))
    for (const socket of sockets) socket.destroy()
    await vi.waitFor(async () => expect((await other.ask('/healthz')).status).toBe(200))
    await other.close()
  })

  const guessFrom = async (other: RunningConsole, forwarded: string): Promise<number> => {
    const headers = { 'x-forwarded-for': forwarded }
    return (await other.ask('/login', { form: { token: 'guess' }, headers })).status
  }

  test('is identified by X-Forwarded-For behind trusted proxies', async () => {
    const other = await startConsole({
      settings: settingsOf({ trustedProxies: ['127.0.0.1', '10.0.0.0/8'] }),
    })
    for (let at = 0; at < 10; at += 1) expect(await guessFrom(other, '203.0.113.1')).toBe(401)
    expect(await guessFrom(other, '203.0.113.1')).toBe(429)
    expect(await guessFrom(other, '203.0.113.1, 10.0.0.7')).toBe(429)
    expect(await guessFrom(other, '203.0.113.5, 203.0.113.1')).toBe(429)
    expect(await guessFrom(other, '203.0.113.2')).toBe(401)
    await other.close()
  })

  test.each(['not an address', '10.0.0.1:4711'])(
    'is identified by the address of the proxy if X-Forwarded-For has the invalid address "%s"',
    async (forwarded) => {
      const other = await startConsole({ settings: settingsOf({ trustedProxies: ['127.0.0.1'] }) })
      for (let at = 0; at < 10; at += 1) expect(await guessFrom(other, forwarded)).toBe(401)
      expect(await guessFrom(other, '127.0.0.1')).toBe(429)
      await other.close()
    },
  )

  test('is identified by the address of the peer, and not by X-Forwarded-For, if the peer is not a trusted proxy', async () => {
    const other = await startConsole()
    for (let at = 0; at < 10; at += 1) expect(await guessFrom(other, `203.0.113.${at}`)).toBe(401)
    expect(await guessFrom(other, '203.0.113.99')).toBe(429)
    await other.close()
  })

  test('may try again after some seconds', async () => {
    let nowMs = Date.now()
    const other = await startConsole({ nowMs: () => nowMs })
    for (let at = 0; at < 11; at += 1) await other.ask('/login', { form: { token: 'guess' } })
    nowMs += 6_000
    expect((await other.ask('/login', { form: { token: tokenOf('olga') } })).status).toBe(303)
    await other.close()
  })
})

test('health checks of the console need neither a token nor the host name of the console', async () => {
  for (const path of ['/healthz', '/readyz'])
    expect(await running.ask(path, { headers: { host: '10.0.0.1' } })).toMatchObject({
      status: 200,
      text: '{"status":"ok"}',
    })
})

test('health checks of the console query the journal at most once per second', async () => {
  const other = await startConsole()
  await Promise.all(Array.from({ length: 50 }, () => other.ask('/readyz')))
  expect(other.asked.length).toBeLessThanOrEqual(2)
  expect(other.asked[0]).toEqual([1, []])
  await other.close()
})

test('the console logs an unexpected error, and sends a response without details of the error', async () => {
  const other = await startConsole({ systemUser: 'alice' })
  other.breakData(new TypeError('Ann is absent'))
  const { status, text } = await other.ask('/', { headers: bearer('olga') })
  expect([status, text.includes('Ann'), other.errors.length]).toEqual([500, false, 1])
  expect((await other.ask('/readyz')).status).toBe(503)
  await other.close()
})

test('the console logs no unexpected error while it answers the requests of all other tests in this file', () => {
  expect(running.errors).toEqual([])
})
