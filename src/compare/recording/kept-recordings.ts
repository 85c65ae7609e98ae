import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** A finished recording of a folder. */
export interface KeptRecording {
  readonly name: string
  readonly writtenMs: number
  readonly bytes: number
}

/** The finished recordings of a folder that several processes write into. */
export interface KeptRecordings {
  /** Takes in what other processes have written and removed, unless that was done a moment ago. */
  refresh(isNeeded?: boolean): Promise<void>
  oldest(): KeptRecording | undefined
  /** The largest counter of a name. */
  counter(): number
  totalBytes(): number
  add(kept: KeptRecording): void
  removeOldest(): Promise<void>
}

/** The name of a finished recording: `000042-20260907T084000Z`; it holds nothing of the exchange but its time. */
const NAME = /^\d{6,}-\d{8}T\d{6}Z$/
/** A file takes at least a block. */
const BLOCK = 4_096
/** Reading the folder takes at most this part of the time. */
const SHARE = 50

/** Creates the list, which is empty before its first refresh. */
export function createKeptRecordings(folder: string, nowMs: () => number): KeptRecordings {
  let kept: KeptRecording[] = []
  let total = 0
  let counter = 0
  let nextMs = -Infinity

  const read = async (): Promise<void> => {
    const names = (await readdir(folder)).filter((name) => NAME.test(name))
    const known = new Map(kept.map((own) => [own.name, own]))
    const found: KeptRecording[] = []
    for (const name of names.sort(byCounter)) {
      const own = known.get(name) ?? (await measure(folder, name))
      if (own !== undefined) found.push(own)
    }
    kept = found
    total = found.reduce((sum, { bytes }) => sum + bytes, 0)
    counter = Math.max(counter, counterOf(kept.at(-1)?.name ?? '0'))
  }
  return {
    refresh: async (isNeeded = false) => {
      const beganMs = nowMs()
      if (!isNeeded && beganMs < nextMs) return
      await read()
      nextMs = nowMs() + SHARE * (nowMs() - beganMs)
    },
    oldest: () => kept[0],
    counter: () => counter,
    totalBytes: () => total,
    add: (own) => {
      kept.push(own)
      total += own.bytes
      counter = Math.max(counter, counterOf(own.name))
    },
    removeOldest: async () => {
      // Before it is removed: another call takes the next one.
      const oldest = kept.shift()
      if (oldest === undefined) return
      total -= oldest.bytes
      await rm(join(folder, oldest.name), { recursive: true, force: true })
    },
  }
}

/** The space that files of these sizes take. */
export function spaceOf(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + Math.ceil(size / BLOCK) * BLOCK, 0)
}

const counterOf = (name: string): number => Number.parseInt(name, 10)

function byCounter(one: string, other: string): number {
  return counterOf(one) - counterOf(other) || (one < other ? -1 : 1)
}

/** Undefined: another process has removed it meanwhile. */
async function measure(folder: string, name: string): Promise<KeptRecording | undefined> {
  const path = join(folder, name)
  try {
    const files = await readdir(path)
    const sizes = await Promise.all(files.map(async (file) => (await stat(join(path, file))).size))
    return { name, writtenMs: (await stat(path)).mtimeMs, bytes: spaceOf(sizes) }
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw cause
  }
}

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && 'code' in cause && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR')
