import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { makeFolder } from '../journal/open-sqlite.ts'

/** Writes a file into a folder of the test's own, and gives its path. */
export async function ownFile(name: string, text: string): Promise<string> {
  const path = join(await makeFolder(), name)
  await writeFile(path, text)
  return path
}
