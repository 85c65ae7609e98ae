import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { errorCodeOf } from '../../errors.ts'
import type { WireExchange } from '../wire-exchange.ts'
import { toRecorded } from './exchange.ts'
import { maskExchange } from './mask-credentials.ts'
import { byCounter, type RecordingFiles, toFiles } from './recording-files.ts'
import { SEALED, sealFile } from './sealed-file.ts'

interface StoreOptions {
  readonly folder: string
  readonly key: Uint8Array
  /** The maximum size of all recordings in bytes. The oldest recordings are deleted to stay below it. */
  readonly maxBytes: number
  readonly nowMs: () => number
}

interface StoredRecording {
  readonly name: string
  readonly writtenMs: number
  readonly bytes: number
}

/** The name of a recording, such as `000042-20260907T084000Z`. The name reveals only the time of the exchange. */
const NAME = /^\d{6,}-\d{8}T\d{6}Z$/
const DRAFT = '.draft-'
/** The age at which a draft is deleted. A process finishes a draft within moments, so an older draft is left over from a crash. */
const DRAFT_MS = 3_600_000
/**
 * The size in bytes of a block of the file system. The size of a recording counts whole blocks, because each file occupies whole blocks.
 */
const BLOCK = 4_096
const MAX_AGE_MS = 2_592_000_000

export type RecordingStore = Awaited<ReturnType<typeof openRecordingStore>>

/** Opens a folder that contains one folder per recording. If the folder is created, only its owner can read it. */
export async function openRecordingStore(options: StoreOptions) {
  const { folder, key, maxBytes, nowMs } = options
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await removeDrafts(folder, nowMs() - DRAFT_MS)
  const names = (await readdir(folder)).filter((own) => NAME.test(own)).sort(byCounter)
  const stored = await Promise.all(names.map((name) => measure(folder, name)))
  let counter = Number.parseInt(names.at(-1) ?? '0', 10)

  const removeOldest = async (): Promise<void> => {
    const oldest = stored.shift()
    if (oldest !== undefined) await rm(join(folder, oldest.name), { recursive: true, force: true })
  }
  const removeOld = async (): Promise<void> => {
    while ((stored[0]?.writtenMs ?? Infinity) < nowMs() - MAX_AGE_MS) await removeOldest()
  }
  await removeOld()
  return {
    /** Writes a recording completely or not at all. Rejects with the error of the file system. */
    add: async (files: RecordingFiles, receivedMs: number): Promise<'recorded' | 'tooLarge'> => {
      await removeOld()
      const stamp = new Date(receivedMs).toISOString().replaceAll(/[-:]|\.\d{3}/g, '')
      for (;;) {
        // Seals the files again for each name, because the authenticated data of each file contains the name.
        const name = `${String(counter + 1).padStart(6, '0')}-${stamp}`
        const sealed = new Map(
          [...files].map(([file, bytes]) => [file + SEALED, sealFile(key, `${name}/${file}`, bytes)]),
        )
        const bytes = spaceOf([...sealed.values()].map(({ length }) => length))
        if (bytes > maxBytes) return 'tooLarge'
        // Older recordings are deleted before the new one is written, so that the limit holds at all times.
        while (stored.reduce((sum, own) => sum + own.bytes, bytes) > maxBytes) await removeOldest()
        const isWritten = await writeWhole(folder, name, sealed)
        counter += 1
        if (isWritten) {
          stored.push({ name, writtenMs: nowMs(), bytes })
          return 'recorded'
        }
      }
    },
  }
}

const spaceOf = (sizes: readonly number[]): number =>
  sizes.reduce((sum, size) => sum + Math.ceil(size / BLOCK) * BLOCK, 0)

async function measure(folder: string, name: string): Promise<StoredRecording> {
  const path = join(folder, name)
  const files = await readdir(path)
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(path, file))).size))
  return { name, writtenMs: (await stat(path)).mtimeMs, bytes: spaceOf(sizes) }
}

async function removeDrafts(folder: string, beforeMs: number): Promise<void> {
  for (const name of (await readdir(folder)).filter((own) => own.startsWith(DRAFT))) {
    const path = join(folder, name)
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && found.mtimeMs < beforeMs) await rm(path, { recursive: true, force: true })
  }
}

/** Writes the files of a recording. Returns false if another process has already used the name. */
async function writeWhole(folder: string, name: string, files: RecordingFiles): Promise<boolean> {
  const draft = join(folder, DRAFT + randomBytes(8).toString('hex'))
  try {
    await mkdir(draft, { mode: 0o700 })
    for (const [file, bytes] of files) await writeFile(join(draft, file), bytes, { mode: 0o600 })
    await rename(draft, join(folder, name))
    return true
  } catch (error) {
    await rm(draft, { recursive: true, force: true }).catch(() => undefined)
    // These codes mean that the folder already exists.
    if (['ENOTEMPTY', 'EEXIST'].includes(errorCodeOf(error) ?? '')) return false
    throw error
  }
}

const [MAX_WAITING, MAX_WAITING_BYTES] = [256, 33_554_432]

/** Creates the queue that masks and writes exchanges. After a failed write it calls `onStopped` once and records nothing more. */
export function createRecorder(store: Pick<RecordingStore, 'add'>, onStopped: (cause: unknown) => void) {
  const results = { recorded: 0, dropped: 0, tooLarge: 0, stopped: 0 }
  let [waiting, waitingBytes, isStopped] = [0, 0, false]
  let last = Promise.resolve()
  const write = async (exchange: WireExchange): Promise<keyof typeof results> => {
    if (isStopped) return 'stopped'
    try {
      const recorded = await toRecorded(exchange)
      return recorded === undefined
        ? 'tooLarge'
        : await store.add(toFiles(maskExchange(recorded)), recorded.receivedMs)
    } catch (cause) {
      isStopped = true
      onStopped(cause)
      return 'stopped'
    }
  }
  return {
    offer: (exchange: WireExchange): void => {
      const bytes = (exchange.request.body?.length ?? 0) + (exchange.reply.body?.length ?? 0)
      if (waiting >= MAX_WAITING || waitingBytes + bytes > MAX_WAITING_BYTES) {
        results.dropped += 1
        return
      }
      waiting += 1
      waitingBytes += bytes
      last = last.then(async () => {
        results[await write(exchange)] += 1
        waiting -= 1
        waitingBytes -= bytes
      })
    },
    end: async (): Promise<typeof results> => {
      await last
      return results
    },
  }
}
