import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { RUN, RUNNING } from '../console/support/sample-comparison.ts'
import { type RunningConsole, startConsole, tokenOf } from '../console/support/start-console.ts'
import { expectFits, findFaults, type Looked, openWindow, takeSteps, type Use, useByKeyboard } from './look-at-console.ts' // prettier-ignore
import { startBrowser } from './start-browser.ts'

/** What needs finished runs and evidence; all others are in served-console.test.ts. */
const pages: readonly Looked[] = [
  ['comparison', '/comparison'],
  ['run', `/comparison/${RUN}`],
  ['running', `/comparison/${RUNNING}`],
  ['live', '/comparison/live:acme'],
  ['report', `/comparison/${RUN}/report`],
]

const browser: Browser | undefined = await startBrowser()
let running: RunningConsole
beforeAll(async () => {
  running = await startConsole()
})
afterAll(async () => {
  await browser?.close()
  await running.close()
})

describe.skipIf(browser === undefined)('the console in Chromium', () => {
  test('has no fault that axe finds on any page, in both themes, and asks nobody else', async () => {
    const { page, events } = await openWindow(browser, running.url, tokenOf('olga'))
    expect({ faults: await findFaults(page, pages), events }).toEqual({ faults: [], events: [] })
    await page.context().close()
  })

  test.each([360, 1280, 2560])(
    'is not wider than a window of %i px, and its markup is text',
    async (width) => {
      const viewport = { width, height: 900 }
      const { page } = await openWindow(browser, running.url, tokenOf('olga'), { viewport })
      await expectFits(page, pages)
      await page.context().close()
    },
  )

  test('the report is inside the page of its run', async () => {
    const { page } = await openWindow(browser, running.url, tokenOf('olga'))
    await page.goto(`/comparison/${RUN}`)
    expect(await page.frameLocator('iframe').locator('h1').textContent()).toBe('Differs')
    await page.context().close()
  })

  const steps = [
    ['signs in, takes a partner back', async ({ page, fill, submit }: Use) => {
      await page.goto('/partners/zenith')
      await fill('#token', tokenOf('otto'))
      await submit('.act button')
      await fill('#back-reason', 'V3 fails')
      await submit('form[aria-label="Back to shadow"] button')
      expect(await page.locator('[role=status]').textContent()).toContain('canary with 20 %')
      return ['back zenith by otto: V3 fails']
    }],
    ['breaks the sandbox, and mends it', async ({ page, submit }: Use) => {
      await page.goto('/sandbox')
      await submit('[value=missing]')
      expect(await page.locator('[role=status]').textContent()).toBe('Differences of V3: Missing marks.')
      await submit('[value=agree]')
      return [
        'note sandbox by otto: Differences of V3: Missing marks.',
        'set differences {"face":"V3","share":0.01,"kinds":["missing"]}',
        'note sandbox by otto: Differences of V3: V2 and V3 agree.',
        'set differences undefined',
      ]
    }],
    ['follows a partner from the list of comparison to the whole report', async ({ page, submit }: Use) => {
      await page.goto('/comparison')
      await submit('a[href="/comparison/live%3Aacme"]')
      await submit('a[href="/comparison/live%3Aacme/report"]')
      expect(await page.locator('h1').textContent()).toBe('Differs')
      return []
    }],
    ['signs out', async ({ page, submit }: Use) => {
      await page.goto('/')
      await submit('.who button')
      expect(new URL(page.url()).pathname).toBe('/login')
      return []
    }],
  ] as const // prettier-ignore

  test.each([true, false])(
    'each action works by keyboard alone, with JavaScript: %s',
    async (javaScriptEnabled) => {
      const { page, events } = await openWindow(browser, running.url, undefined, { javaScriptEnabled })
      await takeSteps(useByKeyboard(page), steps, () => running.calls)
      expect(events).toEqual([])
      await page.context().close()
    },
  )
})
