import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'

import type { OnRead } from '../config/index.ts'

interface FileWatch {
  /** Stores the hash of a file, and watches the file from then on. */
  readonly onRead: OnRead
  /**
   * Calls `onChange` when a file differs from its stored hash and has been stable for one interval. Returns a function that ends the watch.
   */
  start(onChange: () => void, everyMs?: number): () => void
}

const EVERY_MS = 1_000

/**
 * Creates a watch that polls the files by path instead of relying on file system events. Polling also detects that an editor replaced a
 * file, that a symbolic link of a Kubernetes ConfigMap now points elsewhere, and that a file in a network or bind mount changed.
 */
export function createFileWatch(): FileWatch {
  /** The hash of each file, by path. The content is not stored, since a file may hold secrets. */
  const known = new Map<string, string>()
  const readAll = async (): Promise<string> => {
    const texts = [...known.keys()].map((path) => readFile(path, 'utf8').catch(() => undefined))
    return (await Promise.all(texts)).map(digest).join()
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
        let reported: string | undefined
        while (!signal.aborted) {
          const now = await readAll()
          // A file that cannot be loaded keeps differing from its stored hash, so `reported` prevents a second report of the same change.
          if (now === before && now !== reported && now !== [...known.values()].join()) {
            reported = now
            onChange()
          }
          before = now
          await setTimeout(everyMs, undefined, { signal, ref: false }).catch(() => undefined)
        }
      }
      watch().catch(() => stopped.abort())
      return () => stopped.abort()
    },
  }
}

const digest = (text: string | undefined): string => (text === undefined ? '' : hash('sha256', text))
