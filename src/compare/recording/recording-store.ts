import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'

import { createKeptRecordings, spaceOf } from './kept-recordings.ts'
import { SEALED, sealFile } from './seal-file.ts'
import type { RecordingFiles } from './to-files.ts'

/** How much is kept. */
export interface StoreBounds {
  readonly maxBytes: number
  readonly maxAgeMs: number
}

export interface StoreOptions extends StoreBounds {
  readonly folder: string
  /** Encrypts each file; undefined: they are written as they are, with the day alone as their time, since pseudonyms shift times. */
  readonly key: Uint8Array | undefined
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
}

/** What became of a recording. */
export type Stored = 'kept' | 'tooLarge'

/** A folder of recordings, one folder each; the oldest are removed first. Several processes may write into one folder. */
export interface RecordingStore {
  /** Writes a recording as a whole or not at all. Rejects with the error of the file system. */
  add(files: RecordingFiles, receivedMs: number): Promise<Stored>
  /** Removes what is over its age. */
  removeOld(): Promise<void>
}

/** A recording that is being written. */
const DRAFT = /^\.draft-/
/** An older draft is one that a crash has left: another process writes its own within moments. */
const DRAFT_MS = 3_600_000
/** Other processes that may take a name at the same time. */
const MAX_TRIES = 100
const DAY_MS = 86_400_000

/** Opens a folder for recordings, and creates it readable for its owner alone. */
export async function openRecordingStore(options: StoreOptions): Promise<RecordingStore> {
  const { folder, key, maxBytes, maxAgeMs, nowMs } = options
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await removeDrafts(folder, nowMs() - DRAFT_MS)
  const kept = createKeptRecordings(folder, nowMs)

  const removeOld = async (): Promise<void> => {
    await kept.refresh()
    while ((kept.oldest()?.writtenMs ?? Infinity) < nowMs() - maxAgeMs) await kept.removeOldest()
  }
  const seal = (name: string, files: RecordingFiles): readonly NamedFile[] =>
    [...files].map(([file, bytes]) =>
      key === undefined ? [file, bytes] : [file + SEALED, sealFile(key, `${name}/${file}`, bytes)],
    )
  await removeOld()
  return {
    removeOld,
    add: async (files, receivedMs) => {
      await removeOld()
      for (let tries = 1; ; tries += 1) {
        // The name is part of what is sealed.
        const name = `${String(kept.counter() + 1).padStart(6, '0')}-${stampOf(receivedMs)}`
        const sealed = seal(name, files)
        const bytes = spaceOf(sealed.map(([, own]) => own.length))
        if (bytes > maxBytes) return 'tooLarge'
        // Before it is written: the bound holds at all times.
        while (kept.totalBytes() + bytes > maxBytes) await kept.removeOldest()
        const shownMs = key === undefined ? Math.floor(nowMs() / DAY_MS) * DAY_MS : undefined
        if (await writeWhole(folder, name, sealed, tries < MAX_TRIES, shownMs)) {
          kept.add({ name, writtenMs: nowMs(), bytes })
          return 'kept'
        }
        await kept.refresh(true)
      }
    },
  }
}

type NamedFile = readonly [name: string, bytes: Uint8Array]

const stampOf = (ms: number): string => new Date(ms).toISOString().replaceAll(/[-:]|\.\d{3}/g, '')

/** Removes what a crash has left. */
async function removeDrafts(folder: string, beforeMs: number): Promise<void> {
  for (const name of (await readdir(folder)).filter((own) => DRAFT.test(own))) {
    const path = join(folder, name)
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && found.mtimeMs < beforeMs) await rm(path, { recursive: true, force: true })
  }
}

/** False where another process has taken the name, which `mayBeTaken` allows. */
async function writeWhole(
  folder: string,
  name: string,
  files: readonly NamedFile[],
  mayBeTaken: boolean,
  shownMs: number | undefined,
): Promise<boolean> {
  const draft = join(folder, `.draft-${randomBytes(8).toString('hex')}`)
  try {
    await mkdir(draft, { mode: 0o700 })
    for (const [file, bytes] of files) {
      const handle = await open(join(draft, file), 'wx', 0o600)
      try {
        await handle.writeFile(bytes)
        if (shownMs !== undefined) await handle.utimes(shownMs / 1_000, shownMs / 1_000)
      } finally {
        await handle.close()
      }
    }
    await rename(draft, join(folder, name))
    // Not before: a draft that looks old is removed. Another process may have removed the recording by now.
    if (shownMs !== undefined)
      await utimes(join(folder, name), shownMs / 1_000, shownMs / 1_000).catch(() => undefined)
    return true
  } catch (error) {
    await rm(draft, { recursive: true, force: true }).catch(() => undefined)
    if (mayBeTaken && isTaken(error)) return false
    throw error
  }
}

/** A folder with files is there already. */
const isTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && ['ENOTEMPTY', 'EEXIST'].includes(String(error.code))
