import { mkdir, open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { replaceFile } from '../compare/run/run-files.ts'
import { type JournalConfig, journalUrlOf } from '../config/index.ts'
import { errorCodeOf } from '../errors.ts'
import type { KeptStages } from '../rollout/live/known-stages.ts'

/** The file of the last stages; undefined: no folder is named, and the journal is not a file that one could lie beside. */
export function stageFileOf(journal: JournalConfig): string | undefined {
  const url = journalUrlOf(journal)
  if (journal.stateDir !== undefined) return join(journal.stateDir, 'journal.stages')
  return url.startsWith('sqlite:') ? `${url.slice('sqlite:'.length)}.stages` : undefined
}

/** The file of the last change that was seen in a PostgreSQL journal; undefined: no folder is named. */
export function markFileOf({ stateDir }: Pick<JournalConfig, 'stateDir'>): string | undefined {
  return stateDir === undefined ? undefined : join(stateDir, 'journal.mark')
}

/**
 * Keeps the last stages in a file that is replaced as a whole; without a place for one nothing is kept. The mark in the same folder sees to it
 * that another journal is refused.
 */
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
      // Processes on one journal may share the file: the last one to replace it wins.
      await replaceFile(path, text)
      await syncFolder(folder)
    },
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
