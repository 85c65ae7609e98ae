import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'

import chromium from '@sparticuz/chromium'
import { type Browser, chromium as playwright } from 'playwright-core'

/** Options with which Chromium runs as root in a container, and renders text alike on every machine. */
const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none']

/**
 * Starts the Chromium that npm installs. If Chromium cannot start, for example because the machine lacks a library, prints the reason on
 * standard error and returns `undefined`. Throws instead in CI (`CI` is set), where `.ci/run` installs the libraries.
 */
export async function startBrowser(): Promise<Browser | undefined> {
  try {
    const executablePath = await chromium.executablePath()
    if (!existsSync(executablePath)) throw new Error(`${executablePath} is missing`)
    return await launch(executablePath)
  } catch (cause) {
    if (process.env['CI'] !== undefined) throw cause
    const [reason = ''] = String(cause).split('\n')
    console.error(`BROWSER TESTS SKIPPED: Chromium cannot start (${reason}). Install libnss3 and libnspr4.`)
    return undefined
  }
}

/** Retries while another test file is unpacking the program (ETXTBSY), because a file that is being written cannot run. */
async function launch(executablePath: string): Promise<Browser> {
  for (;;)
    try {
      return await playwright.launch({ executablePath, args, headless: true, timeout: 30_000 })
    } catch (cause) {
      if (!String(cause).includes('ETXTBSY')) throw cause
      await wait(UNPACKING_MS)
    }
}

const UNPACKING_MS = 200
