import { randomBytes } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { AdapterError, describeFileError } from '../../errors.ts'

/** Returns a name such as `run-20260907-063012-9f3c`. Names sort by the time at which the runs began. */
export function newRunName(wallMs: number): string {
  const [day = '', time = ''] = new Date(wallMs)
    .toISOString()
    .replace(/[-:]|\..*$/g, '')
    .split('T')
  return `run-${day}-${time}-${randomBytes(2).toString('hex')}`
}

/**
 * Writes the document of a run, and creates the folder if it is missing. Returns the path of `<run>.json`. Throws `ADP_CONFIGURATION` if the
 * folder or the file cannot be written.
 */
export async function writeRun(folder: string, run: string, text: string): Promise<string> {
  const path = join(folder, `${run}.json`)
  try {
    await mkdir(folder, { recursive: true })
    await replaceFile(path, text)
    return path
  } catch (cause) {
    const reason = describeFileError(cause)
    throw new AdapterError(
      'ADP_CONFIGURATION',
      `${path} cannot be written: ${reason}. The run was not stored. Check the folder of the runs and its permissions.`,
      { cause },
    )
  }
}

/** Replaces a file or a symbolic link atomically, even across a power failure. Only the owner can read the new file. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (cause) {
    await rm(draft, { force: true })
    throw cause
  }
}
