import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { RUN, RUNNING } from '../console/support/sample-comparison.ts'
import { type RunningConsole, startConsole, tokenOf } from '../console/support/start-console.ts'
import { startBrowser } from './start-browser.ts'

/** What needs finished runs and evidence; all others are in served-console.test.ts. */
const pages = {
  comparison: '/comparison',
  run: `/comparison/${RUN}`,
  running: `/comparison/${RUNNING}`,
  live: '/comparison/live:acme',
  report: `/comparison/${RUN}/report`,
} as const

const browser: Browser | undefined = await startBrowser()
let running: RunningConsole
beforeAll(async () => {
  running = await startConsole()
})
afterAll(async () => {
  await browser?.close()
  await running.close()
})

interface Opened {
  readonly page: Page
  /** What the browser complained about, and what it asked others for. */
  readonly events: readonly string[]
}

async function open(name: string | undefined, look: BrowserContextOptions = {}): Promise<Opened> {
  if (browser === undefined) throw new Error('skipped')
  const context = await browser.newContext({
    locale: 'en-GB',
    viewport: { width: 1280, height: 900 },
    ...look,
  })
  if (name !== undefined) {
    const { cookie } = await running.enter(name)
    const [key = '', value = ''] = cookie.split('=')
    await context.addCookies([{ name: key, value, url: running.url }])
  }
  const page = await context.newPage()
  const events: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith(`${running.url}/`)) events.push(`request ${request.url()}`)
  })
  page.on('console', (message) => {
    if (!message.text().includes('404')) events.push(`console ${message.text()}`)
  })
  page.on('pageerror', (error) => events.push(`error ${error.message}`))
  page.on('dialog', (dialog) => events.push(`dialog ${dialog.message()}`))
  return { page, events }
}

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let at = 0; at < 60; at += 1) {
    await page.keyboard.press('Tab')
    if (await page.evaluate<boolean>(`document.activeElement?.matches(${JSON.stringify(selector)})`)) return
  }
  throw new Error(`Tab does not reach ${selector}.`)
}

describe.skipIf(browser === undefined)('the console in Chromium', () => {
  test('has no fault that axe finds on any page, in both themes, and asks nobody else', async () => {
    const { page, events } = await open('olga')
    const faults: unknown[] = []
    for (const [name, path] of Object.entries(pages)) {
      await page.emulateMedia({ colorScheme: 'light' })
      await page.goto(`${running.url}${path}`)
      await page.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`)
      const light = await new AxeBuilder({ page }).setLegacyMode().analyze()
      await page.emulateMedia({ colorScheme: 'dark' })
      const dark = await new AxeBuilder({ page }).setLegacyMode().withRules(['color-contrast']).analyze()
      for (const { id, nodes } of [...light.violations, ...dark.violations])
        faults.push([name, id, nodes[0]?.html])
    }
    expect({ faults, events }).toEqual({ faults: [], events: [] })
    await page.context().close()
  })

  test.each([360, 1280, 2560])(
    'is not wider than a window of %i px, and its markup is text',
    async (width) => {
      const { page } = await open('olga', { viewport: { width, height: 900 } })
      const folder = process.env['MARKBRIDGE_PICTURES'] ?? join(tmpdir(), 'markbridge-console-pictures')
      await mkdir(folder, { recursive: true })
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(`${running.url}${path}`)
        const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
        const isInjected = await page.evaluate<boolean>('document.title === "injected"')
        expect({ name, wide: Math.max(0, wide), isInjected }).toEqual({ name, wide: 0, isInjected: false })
        if (process.env['MARKBRIDGE_PICTURES'] === undefined) continue
        await page.screenshot({ path: join(folder, `${name}-${width}.png`), fullPage: true })
      }
      await page.context().close()
    },
  )

  const steps = [
    ['signs in, takes a partner back', async (page: Page, use: Use) => {
      await page.goto(`${running.url}/partners/zenith`)
      await use.fill('#token', tokenOf('otto'))
      await use.submit('.act button')
      await use.fill('#back-reason', 'V3 fails')
      await use.submit('form[aria-label="Back to shadow"] button')
      expect(await page.locator('[role=status]').textContent()).toContain('canary with 20 %')
      return ['back zenith by otto: V3 fails']
    }],
    ['breaks the sandbox, and mends it', async (page: Page, use: Use) => {
      await page.goto(`${running.url}/sandbox`)
      await use.submit('[value=missing]')
      expect(await page.locator('[role=status]').textContent()).toBe('Differences of V3: Missing marks.')
      await use.submit('[value=agree]')
      return [
        'note sandbox by otto: Differences of V3: Missing marks.',
        'set differences {"face":"V3","share":0.01,"kinds":["missing"]}',
        'note sandbox by otto: Differences of V3: V2 and V3 agree.',
        'set differences undefined',
      ]
    }],
    ['follows a partner from the list of comparison to the whole report', async (page: Page, use: Use) => {
      await page.goto(`${running.url}/comparison`)
      await use.submit('a[href="/comparison/live%3Aacme"]')
      await use.submit('a[href="/comparison/live%3Aacme/report"]')
      expect(await page.locator('h1').textContent()).toBe('Differs')
      return []
    }],
    ['signs out', async (page: Page, use: Use) => {
      await page.goto(running.url)
      await use.submit('.who button')
      expect(new URL(page.url()).pathname).toBe('/login')
      return []
    }],
  ] as const // prettier-ignore

  /** How a page is used: by keyboard alone. */
  interface Use {
    readonly fill: (selector: string, text: string) => Promise<void>
    readonly submit: (selector: string) => Promise<void>
  }

  test.each([true, false])(
    'each action works by keyboard alone, with JavaScript: %s',
    async (javaScriptEnabled) => {
      // Without scripts the page cannot be asked which element has the focus: the focus is set, and keys do the rest.
      const { page, events } = await open(undefined, { javaScriptEnabled })
      const reach = async (selector: string): Promise<void> =>
        javaScriptEnabled ? tabTo(page, selector) : page.locator(selector).first().focus()
      const use: Use = {
        fill: async (selector, text) => {
          await reach(selector)
          await page.keyboard.type(text)
        },
        submit: async (selector) => {
          await reach(selector)
          await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')])
        },
      }
      for (const [name, step] of steps) {
        const before = running.calls.length
        const expected = await step(page, use)
        expect({ name, calls: running.calls.slice(before) }).toEqual({ name, calls: expected })
      }
      expect(events).toEqual([])
      await page.context().close()
    },
  )
})
