import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { RUN } from '../console/support/sample-comparison.ts'
import { type RunningConsole, startConsole, tokenOf } from '../console/support/start-console.ts'
import {
  findFaults,
  type Looked,
  type Opened,
  openWindow,
  soundPage,
  useByKeyboard,
} from './look-at-console.ts'
import { startBrowser } from './start-browser.ts'

/** The pages that need finished runs and evidence. All other pages are in served-console.test.ts. */
const pages: readonly Looked[] = [
  ['comparison', '/comparison'],
  ['run', `/comparison/${RUN}`],
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
  describe('a page', () => {
    let window: Opened
    beforeAll(async () => {
      window = await openWindow(browser, running.url, tokenOf('olga'))
    })
    afterAll(() => window.page.context().close())

    test.for(pages)(
      'passes axe, fits windows of each width, runs no injected markup and requests nothing from other hosts: %s',
      async (looked) => {
        expect({ faults: await findFaults(window.page, looked), events: window.events }).toEqual(soundPage)
      },
    )
  })

  test.each([true, false])(
    'lets a keyboard user reach the report from the page of its run (JavaScript: %s)',
    async (javaScriptEnabled) => {
      const look = { javaScriptEnabled }
      const { page, events } = await openWindow(browser, running.url, tokenOf('olga'), look)
      const { submit } = useByKeyboard(page)
      await page.goto(`/comparison/${RUN}`)
      await submit(`a[href="/comparison/${RUN}/report"]`)
      expect(await page.locator('h1').textContent()).toBe('Differs')
      await page.goto('/comparison')
      await submit('a[href="/comparison/live%3Aacme"]')
      await submit('a[href="/comparison/live%3Aacme/report"]')
      expect(await page.locator('h1').textContent()).toBe('Differs')
      expect(events).toEqual([])
      await page.context().close()
    },
  )
})
