import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { SEALED, sealFile } from './seal-file.ts'
import type { RecordingFiles } from './to-files.ts'

/** How much is kept. */
export interface StoreBounds {
  readonly maxBytes: number
  readonly maxAgeMs: number
}

export interface StoreOptions extends StoreBounds {
  readonly folder: string
  /** Encrypts each file; undefined: they are written as they are. */
  readonly key: Uint8Array | undefined
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
}

/** What became of a recording. */
export type Stored = 'kept' | 'tooLarge'

/** A folder of recordings, one folder each; the oldest are removed first. */
export interface RecordingStore {
  /** Writes a recording as a whole or not at all. Rejects with the error of the file system. */
  add(files: RecordingFiles, receivedMs: number): Promise<Stored>
  /** Removes what is over its age. */
  removeOld(): Promise<void>
}

interface Kept {
  readonly name: string
  readonly writtenMs: number
  readonly bytes: number
}

/** The name of a finished recording: `000042-20260907T084000Z`; it holds nothing of the exchange but its time. */
const NAME = /^\d{6,}-\d{8}T\d{6}Z$/
/** A recording that is being written; one that was left by a crash is removed at the next start. */
const DRAFT = /^\.draft-/
/** A file takes at least a block. */
const BLOCK = 4_096

/** Opens a folder for recordings, and creates it readable for its owner alone. */
export async function openRecordingStore(options: StoreOptions): Promise<RecordingStore> {
  const { folder, key, maxBytes, maxAgeMs, nowMs } = options
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const kept = await readKept(folder)
  let counter = kept.reduce((largest, { name }) => Math.max(largest, Number.parseInt(name, 10)), 0)
  let total = kept.reduce((sum, { bytes }) => sum + bytes, 0)

  const removeOldest = async (): Promise<void> => {
    const [oldest] = kept
    if (oldest === undefined) return
    await rm(join(folder, oldest.name), { recursive: true, force: true })
    kept.shift()
    total -= oldest.bytes
  }
  const removeOld = async (): Promise<void> => {
    while ((kept[0]?.writtenMs ?? Infinity) < nowMs() - maxAgeMs) await removeOldest()
  }
  await removeOld()
  return {
    removeOld,
    add: async (files, receivedMs) => {
      counter += 1
      const name = `${String(counter).padStart(6, '0')}-${stampOf(receivedMs)}`
      const sealed = [...files].map(([file, bytes]) =>
        key === undefined
          ? ([file, bytes] as const)
          : ([file + SEALED, sealFile(key, `${name}/${file}`, bytes)] as const),
      )
      const bytes = sealed.reduce((sum, [, own]) => sum + Math.ceil(own.length / BLOCK) * BLOCK, 0)
      await removeOld()
      if (bytes > maxBytes) return 'tooLarge'
      // Before it is written: the bound holds at all times.
      while (total + bytes > maxBytes) await removeOldest()
      await writeWhole(folder, name, sealed)
      kept.push({ name, writtenMs: nowMs(), bytes })
      total += bytes
      return 'kept'
    },
  }
}

const stampOf = (ms: number): string => new Date(ms).toISOString().replaceAll(/[-:]|\.\d{3}/g, '')

/** Finished recordings, oldest first; drafts that a crash has left are removed. */
async function readKept(folder: string): Promise<Kept[]> {
  const kept: Kept[] = []
  for (const name of (await readdir(folder)).sort(
    (one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10),
  )) {
    if (DRAFT.test(name)) await rm(join(folder, name), { recursive: true, force: true })
    if (!NAME.test(name)) continue
    const files = await readdir(join(folder, name))
    const sizes = await Promise.all(files.map(async (file) => (await stat(join(folder, name, file))).size))
    const bytes = sizes.reduce((sum, size) => sum + Math.ceil(size / BLOCK) * BLOCK, 0)
    kept.push({ name, writtenMs: (await stat(join(folder, name))).mtimeMs, bytes })
  }
  return kept
}

async function writeWhole(
  folder: string,
  name: string,
  files: readonly (readonly [name: string, bytes: Uint8Array])[],
): Promise<void> {
  const draft = join(folder, `.draft-${name}`)
  try {
    await mkdir(draft, { mode: 0o700 })
    for (const [file, bytes] of files) {
      const handle = await open(join(draft, file), 'wx', 0o600)
      try {
        await handle.writeFile(bytes)
      } finally {
        await handle.close()
      }
    }
    await rename(draft, join(folder, name))
  } catch (error) {
    await rm(draft, { recursive: true, force: true }).catch(() => undefined)
    throw error
  }
}
