import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Returns the names of everything below a folder and the bytes of its files, as Latin-1 text. */
export async function textBelow(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const texts = entries.map(async (entry) =>
    entry.isFile() ? entry.name + (await readFile(join(entry.parentPath, entry.name), 'latin1')) : entry.name,
  )
  return (await Promise.all(texts)).join('\n')
}
