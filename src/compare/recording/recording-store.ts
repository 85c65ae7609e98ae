import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'

import { errorCodeOf } from '../../errors.ts'
import type { RecordedExchange } from './exchange.ts'
import { maskExchange } from './mask-credentials.ts'
import { pseudonymise, type Pseudonyms } from './pseudonyms.ts'
import { byCounter, type RecordingFiles, toFiles } from './recording-files.ts'
import { SEALED, sealFile } from './sealed-file.ts'

interface StoreOptions {
  readonly folder: string
  /** Encrypts each file; undefined: they are written as they are, with the day alone as their time, since pseudonyms shift times. */
  readonly key: Uint8Array | undefined
  /** The space that is kept at most; the oldest recordings go first. */
  readonly maxBytes: number
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
}

/** A finished recording. */
interface Kept {
  readonly name: string
  readonly writtenMs: number
  readonly bytes: number
}

/** The name of a finished recording: `000042-20260907T084000Z`; it holds nothing of the exchange but its time. */
const NAME = /^\d{6,}-\d{8}T\d{6}Z$/
/** A recording that is being written. */
const DRAFT = '.draft-'
/** An older draft is one that a crash has left: another process writes its own within moments. */
const DRAFT_MS = 3_600_000
/** Other processes that may take a name at the same time. */
const MAX_TRIES = 100
/** Reading the folder takes at most this part of the time. */
const SHARE = 50
/** A file takes at least a block. */
const BLOCK = 4_096
const DAY_MS = 86_400_000
/** Recordings are removed after 30 days. */
const MAX_AGE_MS = 30 * DAY_MS

export type RecordingStore = Awaited<ReturnType<typeof openRecordingStore>>

/** Opens a folder of recordings, one folder each, and creates it readable for its owner alone. Several processes may write into one. */
export async function openRecordingStore(options: StoreOptions) {
  const { folder, key, maxBytes, nowMs } = options
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await removeDrafts(folder, nowMs() - DRAFT_MS)
  let kept: Kept[] = []
  let counter = 0
  let refreshMs = -Infinity

  /** Takes in what other processes have written and removed. */
  const refresh = async (): Promise<void> => {
    const beganMs = nowMs()
    const known = new Map(kept.map((own) => [own.name, own]))
    const found: Kept[] = []
    for (const name of (await readdir(folder)).filter((own) => NAME.test(own)).sort(byCounter)) {
      const own = known.get(name) ?? (await measure(folder, name))
      if (own !== undefined) found.push(own)
    }
    kept = found
    counter = Math.max(counter, Number.parseInt(found.at(-1)?.name ?? '0', 10))
    refreshMs = nowMs() + SHARE * (nowMs() - beganMs)
  }
  const removeOldest = async (): Promise<void> => {
    // Before it is removed: another call takes the next one.
    const oldest = kept.shift()
    if (oldest !== undefined) await rm(join(folder, oldest.name), { recursive: true, force: true })
  }
  const removeOld = async (): Promise<void> => {
    if (nowMs() >= refreshMs) await refresh()
    while ((kept[0]?.writtenMs ?? Infinity) < nowMs() - MAX_AGE_MS) await removeOldest()
  }
  const seal = (name: string, files: RecordingFiles): RecordingFiles =>
    key === undefined
      ? files
      : new Map([...files].map(([file, bytes]) => [file + SEALED, sealFile(key, `${name}/${file}`, bytes)]))
  await removeOld()
  return {
    /** Removes what is past its retention period. */
    removeOld,
    /** Writes a recording as a whole or not at all. Rejects with the error of the file system. */
    add: async (files: RecordingFiles, receivedMs: number): Promise<'kept' | 'tooLarge'> => {
      await removeOld()
      const stamp = new Date(receivedMs).toISOString().replaceAll(/[-:]|\.\d{3}/g, '')
      const shownMs = key === undefined ? Math.floor(nowMs() / DAY_MS) * DAY_MS : undefined
      for (let tries = 1; ; tries += 1) {
        // The name is part of what is sealed.
        const name = `${String(counter + 1).padStart(6, '0')}-${stamp}`
        const sealed = seal(name, files)
        const bytes = spaceOf([...sealed.values()].map(({ length }) => length))
        if (bytes > maxBytes) return 'tooLarge'
        // Before it is written: the bound holds at all times.
        while (kept.reduce((sum, own) => sum + own.bytes, bytes) > maxBytes) await removeOldest()
        if (await writeWhole(folder, name, sealed, tries < MAX_TRIES, shownMs)) {
          kept.push({ name, writtenMs: nowMs(), bytes })
          counter = Math.max(counter, Number.parseInt(name, 10))
          return 'kept'
        }
        await refresh()
      }
    },
  }
}

/** The space that files of these sizes take. */
const spaceOf = (sizes: readonly number[]): number =>
  sizes.reduce((sum, size) => sum + Math.ceil(size / BLOCK) * BLOCK, 0)

/** Undefined: another process has removed it meanwhile. */
async function measure(folder: string, name: string): Promise<Kept | undefined> {
  const path = join(folder, name)
  try {
    const files = await readdir(path)
    const sizes = await Promise.all(files.map(async (file) => (await stat(join(path, file))).size))
    return { name, writtenMs: (await stat(path)).mtimeMs, bytes: spaceOf(sizes) }
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCodeOf(cause) ?? '')) return undefined
    throw cause
  }
}

/** Removes what a crash has left. */
async function removeDrafts(folder: string, beforeMs: number): Promise<void> {
  for (const name of (await readdir(folder)).filter((own) => own.startsWith(DRAFT))) {
    const path = join(folder, name)
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && found.mtimeMs < beforeMs) await rm(path, { recursive: true, force: true })
  }
}

/** False where another process has taken the name, which `mayBeTaken` allows. */
async function writeWhole(
  folder: string,
  name: string,
  files: RecordingFiles,
  mayBeTaken: boolean,
  shownMs: number | undefined,
): Promise<boolean> {
  const draft = join(folder, DRAFT + randomBytes(8).toString('hex'))
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
    // A folder with files is there already.
    if (mayBeTaken && ['ENOTEMPTY', 'EEXIST'].includes(errorCodeOf(error) ?? '')) return false
    throw error
  }
}

/** What became of an exchange. `unfit`: it cannot be pseudonymised without becoming another case. `stopped`: a write failed before. */
export type RecordFate = 'recorded' | 'dropped' | 'unfit' | 'tooLarge' | 'stopped'

interface RecordingTargetOptions {
  /** Opens the folder; called once, at once. */
  readonly open: () => Promise<RecordingStore>
  /** Undefined: the store encrypts. */
  readonly pseudonyms: Pseudonyms | undefined
  /** Called once, with what opening or writing failed with. */
  readonly onStopped: (cause: unknown) => void
}

export type RecordingTarget = ReturnType<typeof createRecordingTarget>

/** Creates a folder that takes exchanges in one form. What cannot be written, as on a full disk, stops it: clients must not pay for trying. */
export function createRecordingTarget(options: RecordingTargetOptions) {
  const { open, pseudonyms, onStopped } = options
  let isStopped = false
  const stop = (cause: unknown): undefined => {
    if (!isStopped) onStopped(cause)
    isStopped = true
  }
  const store = open().catch(stop)
  return {
    /** True once writing has failed: nothing more is taken. */
    isStopped: (): boolean => isStopped,
    /** Removes what is past its retention period. */
    removeOld: async (): Promise<void> => {
      const own = await store
      if (!isStopped) await own?.removeOld().catch(stop)
    },
    /** Writes an exchange without its credentials; never rejects. */
    keep: async (exchange: RecordedExchange): Promise<RecordFate> => {
      const own = await store
      if (own === undefined || isStopped) return 'stopped'
      const shown = toShown(exchange, pseudonyms)
      if (shown === undefined) return 'unfit'
      try {
        const stored = await own.add(shown.files, shown.receivedMs)
        return stored === 'kept' ? 'recorded' : stored
      } catch (cause) {
        stop(cause)
        return 'stopped'
      }
    },
  }
}

/** Undefined: it cannot be shown in this form. */
function toShown(
  exchange: RecordedExchange,
  pseudonyms: Pseudonyms | undefined,
): { readonly files: RecordingFiles; readonly receivedMs: number } | undefined {
  try {
    const masked = maskExchange(exchange)
    const shown = pseudonyms === undefined ? masked : pseudonymise(pseudonyms, masked)
    return shown && { files: toFiles(shown, pseudonyms !== undefined), receivedMs: shown.receivedMs }
  } catch {
    // The texts of clients may be anything; without its error, which may hold one.
    return undefined
  }
}
