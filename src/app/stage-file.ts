import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

import { type JournalConfig, journalUrlOf, type RolloutConfig } from '../config/index.ts'
import type { KeptSnapshots } from '../rollout/index.ts'

/** The file of the last stages; undefined: none is named, and the journal is no file that one could lie beside. */
export function stageFileOf(journal: JournalConfig, { stateFile }: RolloutConfig): string | undefined {
  const url = journalUrlOf(journal)
  return stateFile ?? (url.startsWith('sqlite:') ? `${url.slice('sqlite:'.length)}.stages` : undefined)
}

/** Keeps the last stages in a file that is replaced as a whole; without a path nothing is kept. */
export function createStageFile(path: string | undefined): KeptSnapshots {
  if (path === undefined) return { load: () => Promise.resolve(undefined), save: () => Promise.resolve() }
  return {
    load: async () => {
      try {
        return await readFile(path, 'utf8')
      } catch (error) {
        if (isMissing(error)) return undefined
        throw error
      }
    },
    save: async (text) => {
      const folder = dirname(path)
      await mkdir(folder, { recursive: true })
      // Processes on one journal may share the file: each writes a draft of its own, and the last one to rename wins.
      const draft = `${path}.${process.pid}`
      try {
        await writeDurably(draft, text)
        await rename(draft, path)
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      }
      await syncFolder(folder)
    },
  }
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
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

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT'
