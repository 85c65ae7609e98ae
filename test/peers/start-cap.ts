import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'

import type { OnEnd } from '../support/end-of-file.ts'

const folder = fileURLToPath(new URL('./cap/', import.meta.url))

/** Installs CAP if it is missing. Returns the reason if CAP cannot be installed, or `undefined` if CAP is installed. */
export function installCap(): string | undefined {
  try {
    const lock = JSON.parse(readFileSync(`${folder}package-lock.json`, 'utf8')) as {
      packages: Record<string, { version: string }>
    }
    const isInstalled = ['@sap/cds', '@cap-js/sqlite'].every((name) => {
      const path = `node_modules/${name}`
      try {
        const { version } = JSON.parse(readFileSync(`${folder}${path}/package.json`, 'utf8')) as {
          version: string
        }
        return version === lock.packages[path]?.version
      } catch {
        return false
      }
    })
    if (!isInstalled)
      execFileSync('npm', ['ci', '--ignore-scripts', '--omit=optional'], {
        cwd: folder,
        stdio: 'pipe',
        timeout: 120_000,
      })
    return undefined
  } catch (cause) {
    return `SAP CAP cannot be installed: ${String(cause).slice(0, 200)}`
  }
}

export interface CapMark {
  readonly ExternalID: string
  readonly Attendee_ExternalID: string
  readonly Event_ExternalID: string
  readonly Qualifier_MinutesLate: number | null
}

export interface Cap {
  readonly url: string
  readonly port: number
  /** Returns the marks of an event in CAP's database, sorted by learner. */
  marks(event: string): CapMark[]
  execute(sql: string): void
}

/** Starts CAP in its own process with an empty database. */
export async function startCap(onEnd: OnEnd): Promise<Cap> {
  const temporary = mkdtempSync(join(tmpdir(), 'markbridge-peers-'))
  const file = join(temporary, 'cap.db')
  const script = fileURLToPath(new URL('./cap-process.ts', import.meta.url))
  const child = spawn(process.execPath, [script, file], { stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const ended = once(child, 'close')
  onEnd(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(temporary, { recursive: true, force: true })
  })
  let port: number | undefined
  for await (const line of createInterface(child.stdout)) {
    port = Number(/^ready (\d+)$/.exec(line)?.[1])
    if (!Number.isNaN(port)) break
    printed += `${line}\n`
  }
  if (port === undefined || Number.isNaN(port)) throw new Error(`CAP has not started: ${printed}`)
  // Discards the further output of CAP, because a full pipe would block CAP.
  child.stdout.resume()
  const database = new DatabaseSync(file)
  onEnd(async () => database.close())
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    marks: (event) =>
      database
        .prepare('SELECT * FROM Marks WHERE Event_ExternalID = ? ORDER BY Attendee_ExternalID, RecordedOn')
        .all(event) as unknown as CapMark[],
    execute: (sql) => database.exec(sql),
  }
}
