import { writeReport } from '../../src/compare/report/write-report.ts'
import { termRun } from '../compare/report/sample-runs.ts'
import { startBrowser } from './start-browser.ts'

// Draws the picture in the README: node test/browser/draw-report-picture.ts
const browser = await startBrowser()
if (browser !== undefined) {
  const page = await browser.newPage({ viewport: { width: 1100, height: 950 }, colorScheme: 'light' })
  await page.setContent(writeReport(termRun(), 'html', { exact: false }))
  await page.screenshot({ path: 'docs/images/compare-report.png' })
  await browser.close()
}
