import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'

/** A view of the console: its page, and the input that opens the view on the page. */
export type Looked = readonly [name: string, path: string, then?: (page: Page) => Promise<void>]

export interface Opened {
  readonly page: Page
  /** The errors that the browser reported, and its requests to other hosts. */
  readonly events: readonly string[]
}

/** Opens a browser window for a console, signed in if a token is given. */
export async function openWindow(
  browser: Browser | undefined,
  url: string,
  token?: string,
  look: BrowserContextOptions = {},
): Promise<Opened> {
  if (browser === undefined) throw new Error('skipped')
  const size = { width: 1280, height: 900 }
  const context = await browser.newContext({ locale: 'en-GB', viewport: size, baseURL: url, ...look })
  const page = await context.newPage()
  const events: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`)) events.push(`request ${request.url()}`)
  })
  page.on('console', (message) => {
    if (!message.text().includes('404')) events.push(`console ${message.text()}`)
  })
  page.on('pageerror', (error) => events.push(`error ${error.message}`))
  page.on('dialog', (dialog) => events.push(`dialog ${dialog.message()}`))
  if (token !== undefined) {
    await page.goto('/login')
    await page.locator('#token').fill(token)
    await Promise.all([page.waitForEvent('load'), page.locator('.act button').click()])
  }
  return { page, events }
}

async function show(page: Page, [name, path, then]: Looked): Promise<void> {
  await page.goto(path)
  await then?.(page)
  if (name === 'overview') await page.locator('.plot canvas').nth(1).waitFor()
}

/** The widths of a phone, a laptop and a wide screen in pixels. */
const WIDTHS = [360, 1_280, 2_560]

/** Evaluates to true if a page in a narrow window shows a table cell outside of a card, or without its label. */
const HAS_ROWS = `[...document.querySelectorAll('.rows tbody :is(th, td):not(.missing)')].some((cell) =>
  getComputedStyle(cell).display !== 'block' || !cell.dataset.label)`

/**
 * Finds the faults of a page: violations of axe in both themes with all details open, a page that is wider than the window, a table that
 * is not made of cards on a phone, and injected markup that runs. Writes pictures to the folder `MARKBRIDGE_PICTURES`.
 */
export async function findFaults(page: Page, looked: Looked): Promise<readonly unknown[]> {
  const [name] = looked
  const faults: unknown[] = []
  await page.setViewportSize({ width: 360, height: 900 })
  await page.emulateMedia({ colorScheme: 'light' })
  await show(page, looked)
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 })
    const beyond = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    if (beyond > 0) faults.push(`is ${beyond} px wider than a window of ${width} px`)
    await takePicture(page, `${name}-${width}`)
    if (width < 768 && (await page.evaluate<boolean>(HAS_ROWS))) faults.push('shows a table without cards')
  }
  if (await page.evaluate<boolean>('document.title === "injected"')) faults.push('runs its markup')
  await page.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`)
  const light = await new AxeBuilder({ page }).setLegacyMode().analyze()
  await page.emulateMedia({ colorScheme: 'dark' })
  const dark = await new AxeBuilder({ page }).setLegacyMode().withRules(['color-contrast']).analyze()
  for (const { id, nodes } of [...light.violations, ...dark.violations]) faults.push([id, nodes[0]?.html])
  return faults
}

/** The result for a page without a fault, in a window without events. */
export const soundPage = { faults: [], events: [] }

async function takePicture(page: Page, name: string): Promise<void> {
  const pictures = process.env['MARKBRIDGE_PICTURES']
  if (pictures === undefined) return
  await mkdir(pictures, { recursive: true })
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })
}

/** A page that a person uses only with the keyboard. */
export interface Use {
  readonly page: Page
  readonly fill: (selector: string, text: string) => Promise<void>
  readonly check: (selector: string) => Promise<void>
  /** Presses a button, follows a link or opens a summary. */
  readonly submit: (selector: string) => Promise<void>
}

export function useByKeyboard(page: Page): Use {
  /** Presses Tab until the element has the focus. */
  const reach = async (selector: string): Promise<void> => {
    const focused = page.locator(`${selector}:focus`)
    for (let at = 0; at < 80; at += 1) {
      await page.keyboard.press('Tab')
      if ((await focused.count()) > 0) return
    }
    throw new Error(`Tab does not reach ${selector}.`)
  }
  return {
    page,
    fill: async (selector, text) => {
      await reach(selector)
      await page.keyboard.type(text)
    },
    check: async (selector) => {
      await reach(selector)
      await page.keyboard.press('Space')
    },
    submit: async (selector) => {
      await reach(selector)
      const isSummary = (await page.locator('summary:focus').count()) > 0
      await (isSummary ? page.keyboard.press('Enter') : Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')])) // prettier-ignore
    },
  }
}

/** Takes one step after the other, and compares the entries that each step has added to `record` with the expected entries. */
export async function takeSteps(
  use: Use,
  steps: readonly (readonly [name: string, step: (use: Use) => Promise<readonly unknown[]>])[],
  record: () => readonly unknown[] | Promise<readonly unknown[]>,
): Promise<void> {
  for (const [name, step] of steps) {
    const before = (await record()).length
    const done = await step(use)
    expect({ name, done: (await record()).slice(before) }).toEqual({ name, done })
  }
}
