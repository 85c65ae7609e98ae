import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { makeFolder } from '../journal/open-sqlite.ts'

/** Writes a file to a new folder of the test and returns its path. */
export async function ownFile(name: string, text: string): Promise<string> {
  const path = join(await makeFolder(), name)
  await writeFile(path, text)
  return path
}
