import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { serveConsole, type ServedConsole, tokenOf } from '../console/support/serve-console.ts'
import { batchOf, guid } from '../support/batch-request.ts'
import { atEndOfFile } from '../support/end-of-file.ts'
import { findFaults, type Looked, type Opened, openWindow, soundPage, takeSteps, type Use, useByKeyboard } from './look-at-console.ts' // prettier-ignore
import { startBrowser } from './start-browser.ts'

/** HTML markup that a client can write into a batch, and an operator into a reason. */
const MARKUP = `"><script>document.title='injected'</script><img src=x onerror="document.title='injected'">`
const REGISTER = 'fixtures/class-register/body.txt'

const onEnd = atEndOfFile()
const browser: Browser | undefined = await startBrowser()

/** Starts a console with data for all of its pages, and returns the ids of the learners in the first batch. */
async function serveFilled(): Promise<ServedConsole & { readonly learners: readonly string[] }> {
  const served = await serveConsole(onEnd)
  const { mark, post, postMarks, setFaults, ask } = served
  const register = Array.from({ length: 27 }, () => mark())
  const learners = register.map(({ Learner }) => String(Learner))
  const { headers, body } = batchOf([...register, mark({ SchoolAttendanceCode: guid(5) }), '{"Learner":"'])
  const first = await post({ headers, body: body.replace('Content-ID: 29', `Content-ID: ${MARKUP}`) })
  await setFaults({ kind: 'reset', apply: true, method: 'POST', face: 'V3' }, { kind: 'status', status: 503, headers: { 'Retry-After': '100' }, method: 'GET', face: 'V3' }) // prettier-ignore
  const second = await postMarks([mark(), mark()])
  expect([first.status, second.status, second.text]).toEqual([200, 200, expect.stringContaining('504')])
  await served.leaveBehind()
  const proposed = await ask('otto', '/partners/acme', { step: 'set', stage: 'shadow', reason: MARKUP })
  expect(proposed).toMatchObject({ status: 200 })
  await served.isIndexed(4)
  return { ...served, learners }
}

let served: Awaited<ReturnType<typeof serveFilled>>
beforeAll(async () => {
  served = await serveFilled()
})
afterAll(() => browser?.close())

const pages: readonly Looked[] = [
  ['overview', '/'],
  ['partners', '/partners'],
  ['partner', '/partners/acme'],
  ['batches', '/batches'],
  ['records', '/batches?contentId=1'],
  ['batch', '/batches/1'],
  ['record', '/batches/1/1'],
  ['refused-record', '/batches/1/28'],
  ['revealed-record', '/batches/1/2', (page) => reveal(page, 'a parent asks')],
  ['try-it', '/try'],
  ['tried', '/try', (page) => tryFile(page, REGISTER)],
  ['tried-in-vain', '/try', (page) => tryFile(page, 'package.json')],
  ['comparison', '/comparison'],
  ['sandbox', '/sandbox'],
  ['dead-letters', '/letters'],
  ['not-applied', '/letters?kind=notApplied'],
  ['parked', '/letters?kind=parked'],
  ['parked-cause', '/letters?kind=parked&reason=connectionLost'],
  ['audit', '/audit'],
  ['not-found', '/nowhere'],
  ['login', '/login'],
]

async function reveal(page: Page, reason: string): Promise<void> {
  await page.locator('#reveal-reason').fill(reason)
  await Promise.all([page.waitForEvent('load'), page.locator('form[aria-label="Show the values"] button').click()]) // prettier-ignore
}

async function tryFile(page: Page, path: string): Promise<void> {
  await page.locator('#try-batch').setInputFiles(path)
  await Promise.all([page.waitForEvent('load'), page.locator('form[aria-label="Try it"] button').click()]) // prettier-ignore
}

/** Opens a window as a person, or without a login if no name is given. */
const open = (name: string | undefined, look?: Parameters<typeof openWindow>[3]) =>
  openWindow(browser, served.url, name && tokenOf(name), look)

describe.skipIf(browser === undefined)('the console in Chromium, over the adapter and the sandbox', () => {
  describe('a page', () => {
    let window: Opened
    beforeAll(async () => {
      window = await open('olga')
    })
    afterAll(() => window.page.context().close())

    test.for(pages)(
      'passes axe, fits windows of each width, runs no injected markup and requests nothing from other hosts: %s',
      async (looked) => {
        expect({ faults: await findFaults(window.page, looked), events: window.events }).toEqual(soundPage)
      },
    )
  })

  test('draws its charts when the browser reports the language of a POSIX locale', async () => {
    const { page, events } = await open('olga')
    await page.addInitScript(
      "Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix' })",
    )
    await page.goto('/')
    await page.locator('[data-chart] canvas').first().waitFor()
    expect(events).toEqual([])
    await page.context().close()
  })

  test.each([
    ['Europe/Paris', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC .*\d\d:\d\d.*(?:CE|GMT)/],
    ['UTC', /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/],
  ])('shows times in UTC, and in the zone of the browser if it differs: %s', async (timezoneId, expected) => {
    const { page } = await open('olga', { timezoneId })
    await page.goto('/batches')
    expect(await page.locator('td time').first().textContent()).toMatch(expected)
    await page.context().close()
  })

  const enter = async ({ page, fill, submit }: Use, name: string, path: string): Promise<void> => {
    await page.context().clearCookies()
    await page.goto(path)
    await fill('#token', tokenOf(name))
    await submit('.act button')
    expect(new URL(page.url()).pathname).toBe(path)
  }

  /** The steps of a person. Each step returns the entries that it adds to the audit trail. */
  const steps = [
    ['takes a partner forward, after a look at what would happen', async (use: Use) => {
      await enter(use, 'otto', '/partners/zenith')
      expect(await use.page.locator('form[aria-label="Move to shadow"]').textContent()).toContain('is possible now')
      await use.fill('#shadow-reason', 'V3 is ready')
      await use.submit('form[aria-label="Move to shadow"] button')
      return ['propose zenith otto V3 is ready (advice: ready)']
    }],
    ['approves the step', async (use: Use) => {
      await enter(use, 'anna', '/partners/zenith')
      await use.fill('#approve-reason', 'seen')
      await use.submit('form[aria-label="Approve the step"] button')
      expect(await use.page.locator('[aria-current=step]').textContent()).toContain('shadow')
      return ['approve zenith anna seen (advice: ready)', 'commit zenith otto V3 is ready (advice: ready)']
    }],
    ['looks up a school, and goes back without a reason', async (use: Use) => {
      await use.fill('#school', 'school-7')
      await use.submit('form[aria-label=School] button')
      expect(await use.page.locator('[role=status]').textContent()).toContain('V2 serves school-7')
      await use.submit('form[aria-label="Back to legacy"] button')
      expect(await use.page.locator('[role=status]').textContent()).toContain('legacy')
      return ['back zenith anna']
    }],
    ['searches a learner and opens the record', async (use: Use) => {
      await enter(use, 'olga', '/batches')
      await use.fill('#search-text', served.learners[20] ?? '')
      await use.submit('form[aria-label=Search] button')
      expect(new URL(use.page.url()).search).toMatch(/^\?learner=[0-9a-f]{13}$/)
      await use.submit('tbody th a')
      expect(new URL(use.page.url()).pathname).toBe('/batches/1/21')
      expect(await use.page.content()).not.toContain(served.learners[20])
      return []
    }],
    ['reveals the values of the record', async (use: Use) => {
      await use.fill('#reveal-reason', 'a parent asks')
      await use.submit('form[aria-label="Show the values"] button')
      expect((await use.page.content()).split(`"${served.learners[20]}"`)).toHaveLength(3)
      return ['reveal olga acme: batch 1, part 21: a parent asks']
    }],
    ['tries a batch', async (use: Use) => {
      await use.page.goto('/try')
      await use.page.locator('#try-batch').setInputFiles(REGISTER)
      await use.submit('form[aria-label="Try it"] button')
      expect(await use.page.locator('[role=status]').textContent()).toContain('30 records')
      await use.submit('details:nth-of-type(2) summary')
      expect(await use.page.locator('details[open]').count()).toBe(2)
      return []
    }],
    ['clears dead letters', async (use: Use) => {
      await use.page.goto('/letters')
      await use.submit('section a')
      await use.check('[name=record]')
      await use.fill('#group0-reason', 'sent anew')
      await use.submit('form[aria-label="Clear the selected records"] button')
      expect(await use.page.locator('[role=status]').textContent()).toBe('1 dead letter cleared.')
      return [expect.stringMatching(/^clear olga acme: batch \d+, parts 1: sent anew$/) as string]
    }],
    ['retries all parked records', async (use: Use) => {
      await use.page.goto('/letters?kind=parked')
      await use.fill('#group0-reason', 'V3 is back')
      await use.submit('form[aria-label^=Retry] button')
      return expect.arrayContaining([expect.stringMatching(/^retry olga acme: batch \d+, parts [\d, ]+: V3 is back$/)]) as string[]
    }],
    ['sets a fault of the sandbox, and removes it', async (use: Use) => {
      await use.page.goto('/sandbox')
      await use.submit('button[value=slow]')
      expect(await use.page.locator('[role=status]').textContent()).toBe('Faults: V3 is slow.')
      await use.submit('button[value=off]')
      return ['sandbox olga Faults: V3 is slow.', 'sandbox olga Faults: No fault.']
    }],
    ['signs out', async ({ page, submit }: Use) => {
      await submit('.who button')
      expect(new URL(page.url()).pathname).toBe('/login')
      return []
    }],
  ] as const // prettier-ignore

  const readTrail = async (): Promise<readonly string[]> => {
    const { text } = await served.ask('olga', '/audit')
    const { entries } = JSON.parse(text) as {
      entries: Record<'action' | 'partner' | 'by' | 'reason', string | null>[]
    }
    return entries
      .map(({ action, partner, by, reason }) =>
        [action, partner, by, reason].filter((word) => (word ?? '') !== '').join(' '),
      ) // prettier-ignore
      .toReversed()
  }

  test.each([true, false])(
    'lets a keyboard user take every action (JavaScript: %s)',
    async (javaScriptEnabled) => {
      // The steps change the data of the console, so each run of this test starts with a new console.
      served = await serveFilled()
      const { page, events } = await open(undefined, { javaScriptEnabled })
      await takeSteps(useByKeyboard(page), steps, readTrail)
      expect(events).toEqual([])
      await page.context().close()
    },
  )

  test('replaces only the sections of an open page that have changed', async () => {
    const { page } = await open('olga')
    await page.goto('/')
    await page.locator('.plot canvas').nth(1).waitFor()
    await page.evaluate(`for (const one of document.querySelectorAll('section, h1')) one.dataset.marked = ''`)
    await served.setFaults()
    await served.postMarks([served.mark()])
    await page.locator('section:has(h2:text("Balance")):not([data-marked])').waitFor()
    expect(await page.locator('h1[data-marked]').count()).toBe(1)
    await page.context().close()
  })

  test('replaces the forms of an open page, but not while an operator fills them in', async () => {
    const [idle, busy] = [(await open('olga')).page, (await open('olga')).page]
    for (const page of [idle, busy]) await page.goto('/partners/acme')
    await busy.locator('#canary-reason').fill('V3 is ready')
    expect(await served.ask('anna', '/partners/acme', { step: 'back' })).toMatchObject({ status: 200 })
    await idle.locator('#shadow-reason').waitFor()
    await busy.locator('[aria-current=step]:has-text("legacy")').waitFor()
    expect(await busy.locator('#canary-reason').inputValue()).toBe('V3 is ready')
    for (const page of [idle, busy]) await page.context().close()
  })
})
