import { mkdir, open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { replaceFile } from '../compare/run/run-files.ts'
import { type JournalConfig, journalUrlOf } from '../config/index.ts'
import { errorCodeOf } from '../errors.ts'
import type { KeptStages } from '../rollout/live/known-stages.ts'

/** Returns the path of the file with the last known stages, or `undefined` without `stateDir` and without an SQLite file. */
export function stageFileOf(journal: JournalConfig): string | undefined {
  const url = journalUrlOf(journal)
  if (journal.stateDir !== undefined) return join(journal.stateDir, 'journal.stages')
  return url.startsWith('sqlite:') ? `${url.slice('sqlite:'.length)}.stages` : undefined
}

/** Returns the path of the high-water file of a PostgreSQL journal, or `undefined` without `stateDir`. */
export function highWaterFileOf({ stateDir }: Pick<JournalConfig, 'stateDir'>): string | undefined {
  return stateDir === undefined ? undefined : join(stateDir, 'journal.mark')
}

/** Creates the store of the last known stages. Each save replaces the whole file. Without a path, nothing is stored. */
export function createStageFile(journal: JournalConfig): KeptStages {
  const path = stageFileOf(journal)
  if (path === undefined) return { load: () => Promise.resolve(undefined), save: () => Promise.resolve() }
  return {
    load: () =>
      readFile(path, 'utf8').catch((error: unknown) => {
        if (errorCodeOf(error) === 'ENOENT') return undefined
        throw error
      }),
    save: async (text) => {
      const folder = dirname(path)
      await mkdir(folder, { recursive: true })
      // Replaces the file as a whole, because several processes of a machine may share the file. The last process wins.
      await replaceFile(path, text)
      await syncFolder(folder)
    },
  }
}

async function syncFolder(path: string): Promise<void> {
  // Does nothing on Windows, which cannot flush a folder. NTFS logs changes of a folder itself.
  if (process.platform === 'win32') return
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
