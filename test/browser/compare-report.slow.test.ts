import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { writeReport } from '../../src/compare/report/write-report.ts'
import type { RunDocument } from '../../src/compare/run-document.ts'
import {
  emptyRun,
  hostileRun,
  liveRun,
  manyClassesRun,
  readyRun,
  schoolRun,
  stoppedRun,
  termRun,
} from '../compare/report/sample-runs.ts'
import { isLongRun } from '../support/long-run.ts'
import { startBrowser } from './start-browser.ts'

const samples = {
  term: termRun(),
  live: liveRun(),
  ready: readyRun(),
  stopped: stoppedRun(),
  empty: emptyRun,
  school: schoolRun(),
  manyClasses: manyClassesRun(),
  hostile: hostileRun(),
}
const desktop = { width: 1180, height: 900 }
const phone = { width: 360, height: 740 }

const browser: Browser | undefined = await startBrowser()
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-browser-'))
})
afterAll(async () => {
  await browser?.close()
  await rm(folder, { recursive: true, force: true })
})

interface Opened {
  readonly page: Page
  /** The requests of the page for other files, and the errors that the browser reported. */
  readonly events: readonly string[]
}

async function open(
  document: RunDocument,
  look: { readonly colorScheme?: 'light' | 'dark'; readonly viewport?: typeof desktop } = {},
): Promise<Opened> {
  if (browser === undefined) throw new Error('skipped')
  const file = join(folder, `${crypto.randomUUID()}.html`)
  await writeFile(file, writeReport(document, 'html', { exact: false }))
  // Axe needs a separate browser context.
  const context = await browser.newContext({ viewport: desktop, colorScheme: 'light', ...look })
  const page = await context.newPage()
  const events: string[] = []
  page.on('request', (request) => {
    if (request.url() !== pathToFileURL(file).href) events.push(`request ${request.url()}`)
  })
  page.on('console', (message) => events.push(`console ${message.text()}`))
  page.on('pageerror', (error) => events.push(`error ${error.message}`))
  page.on('dialog', (dialog) => events.push(`dialog ${dialog.message()}`))
  await page.goto(pathToFileURL(file).href)
  return { page, events }
}

describe.skipIf(browser === undefined)('the HTML report of a comparison in Chromium', () => {
  test.each(Object.entries(samples))(
    'requests no other file, runs no script from its data and fits the screen of a phone: %s',
    async (_, document) => {
      const { page, events } = await open(document, { viewport: phone })
      const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      expect({ events, wide, title: (await page.title()).includes('injected') && 'text only' }).toEqual({
        events: [],
        wide: 0,
        title: document === samples.hostile && 'text only',
      })
      expect(await page.evaluate('document.title === "injected"')).toBe(false)
      await page.context().close()
    },
  )

  // Axe takes seconds for a page with many elements. A report with few days and classes is faster, and has each kind of element.
  const { days, differences } = samples.term
  const few = { ...samples.term, days: days.slice(50, 52), differences: differences.slice(0, 11) }
  const looks: readonly (readonly [string, RunDocument, 'light' | 'dark'])[] = Object.entries(
    isLongRun ? { few, ...samples } : { few },
  ).flatMap(([name, document]) => [[name, document, 'light'] as const, [name, document, 'dark'] as const])
  test.each(looks)('passes the accessibility checks of axe: %s', async (_, document, colorScheme) => {
    const { page } = await open(document, { colorScheme })
    // Opens all details, so that axe checks their contents as well.
    await page.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`)
    const { violations } = await new AxeBuilder({ page }).analyze()
    expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([])
    await page.context().close()
  })

  test('applies its style sheet in the light and the dark theme', async () => {
    const backgrounds: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await open(samples.term, { colorScheme })
      backgrounds.push(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor'))
      await page.context().close()
    }
    expect(backgrounds).toEqual(['rgb(255, 255, 255)', 'rgb(18, 23, 29)'])
  })

  test('shows the outcome, its meaning and the verdicts without scrolling', async () => {
    const { page } = await open(samples.term)
    const inView = await page.evaluate<string[]>(
      `[...document.querySelectorAll('h1, h2')].filter((one) => one.getBoundingClientRect().bottom < innerHeight).map((one) => one.textContent)`,
    )
    expect(inView).toEqual(['Differs', 'Verdicts'])
    await page.context().close()
  })

  test('gives each chart a name and a table of its figures', async () => {
    const { page } = await open(samples.live)
    const charts = await page.evaluate<string[]>(
      `[...document.querySelectorAll('svg[role=img]')].map((one) => one.getAttribute('aria-label'))`,
    )
    expect(charts).toEqual([
      'Verdicts: Same 3,400, Equivalent 600, Differs 190, Unknown 15',
      'Records that need attention by day, 5 Jan 2026 to 30 Jan 2026. Highest: 25 on 8 Jan 2026.',
    ])
    const headings = await page.locator('.chart h3').allTextContents()
    expect(headings).toEqual([
      'Over time',
      'By field',
      'By hour of the comparison (UTC)',
      'By code class',
      'By kind',
      'Delay',
    ])
    expect(await page.locator('.chart:has(h3:text("Delay")) tbody tr').count()).toBe(8)
    await page.context().close()
  })

  test('prints on A4 with the outcome on the first page', async () => {
    const { page } = await open(samples.term, { colorScheme: 'dark' })
    const pdf = await page.pdf({ preferCSSPageSize: true })
    const text = pdf.toString('latin1')
    const [, width, height] = /\/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]/.exec(text) ?? []
    const pages = text.match(/\/Type \/Page\b/g)?.length ?? 0
    expect([Math.round(Number(width)), Math.round(Number(height))]).toEqual([595, 842])
    expect(pages).toBeGreaterThan(2)
    expect(pages).toBeLessThan(8)
    expect(pdf.length).toBeLessThan(1_000_000)
    await page.setViewportSize({ width: 695, height: 900 })
    await page.emulateMedia({ media: 'print' })
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(255, 255, 255)')
    const broken = `[...document.querySelectorAll('thead th')].filter((one) => one.scrollWidth > one.clientWidth)`
    expect(await page.evaluate(`${broken}.map((one) => one.textContent)`)).toEqual([])
    await page.context().close()
  })
})
