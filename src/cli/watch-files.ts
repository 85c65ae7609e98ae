import { hash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'

import type { OnRead } from '../config/index.ts'

/** Detects changes of files since they were read. */
interface FileWatch {
  /** Remembers what was read of a file, which is watched from then on. */
  readonly onRead: OnRead
  /** Calls `onChange` when a file differs and has stayed the same for one interval; returns what ends the watch. */
  start(onChange: () => void, everyMs?: number): () => void
}

const EVERY_MS = 1_000

/**
 * Creates the watch. It compares the files by their paths in intervals instead of waiting for events of the file system: so it notices
 * an editor that replaces the file, the symbolic links of a Kubernetes ConfigMap, and changes in network and bind mounts.
 */
export function createFileWatch(): FileWatch {
  /** Hashes, since the files may hold secrets; undefined for a file that could not be read. */
  const known = new Map<string, string | undefined>()
  const isChanged = async (): Promise<boolean> => {
    for (const [path, before] of known) {
      const text = await readFile(path, 'utf8').catch(() => undefined)
      if (digest(text) !== before) return true
    }
    return false
  }
  return {
    onRead: (path, text) => {
      known.set(path, digest(text))
    },
    start: (onChange, everyMs = EVERY_MS) => {
      const stopped = new AbortController()
      const { signal } = stopped
      const watch = async (): Promise<void> => {
        let before: string | undefined
        let isCompared = false
        while (!signal.aborted) {
          const now = await signatureOf([...known.keys()])
          if (now !== before) isCompared = false
          else if (!isCompared) {
            isCompared = true
            if (await isChanged()) onChange()
          }
          before = now
          await setTimeout(everyMs, undefined, { signal, ref: false }).catch(() => undefined)
        }
      }
      void watch()
      return () => stopped.abort()
    },
  }
}

const digest = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : hash('sha256', text)

/** A text that changes when one of the files is written or replaced. */
async function signatureOf(paths: readonly string[]): Promise<string> {
  const signatures = paths.map(async (path) => {
    const found = await stat(path, { bigint: true }).catch(() => undefined)
    return found === undefined
      ? 'none'
      : [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join()
  })
  return (await Promise.all(signatures)).join(' ')
}
