import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { isatty } from 'node:tty'

/** Writes the lines of a log to a file descriptor without ever making its caller wait. */
export interface LineWriter {
  /** Queues one line, which ends with a line feed. A line for which the queue has no room is dropped and counted. */
  readonly write: (line: string) => void
  /** Writes what is queued as far as the descriptor takes it at once. For the end of the process. */
  readonly flushAtExit: () => void
  /** Returns the number of lines dropped since the start. */
  readonly droppedLines: () => number
}

/** Lines are written in blocks of this many characters, at the latest after `FLUSH_MS`: one write per batch took a fifteenth of the hot path. */
const FLUSH_CHARS = 12_288
const FLUSH_MS = 250
/** The most characters that wait while the descriptor takes none, as on a full disk. */
const MAX_WAITING_CHARS = 1_048_576

/**
 * Creates a writer of lines. A failed or partial write is tried again every 250 ms, so the log continues when there is room again.
 * `onRecovered` is called with the number of lines that were dropped since its last call, once the lines before them were written.
 */
export function createLineWriter(fd: number, onRecovered: (lines: number) => void): LineWriter {
  const target = openNonBlocking(fd)
  let waiting: string[] = []
  let waitingChars = 0
  /** The block that is being written. Empty: none is. */
  let block: Uint8Array = new Uint8Array()
  let isWriting = false
  let dropped = 0
  let reported = 0
  let timer: NodeJS.Timeout | undefined

  const takeBlock = (): void => {
    if (block.length > 0) return
    block = Buffer.from(waiting.join(''))
    waiting = []
    waitingChars = 0
    if (dropped === reported) return
    const lines = dropped - reported
    reported = dropped
    onRecovered(lines)
  }
  const flushLater = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined
      flush()
    }, FLUSH_MS).unref()
  }
  const flush = (): void => {
    if (isWriting) return
    takeBlock()
    if (block.length === 0) return
    isWriting = true
    write(target.fd, block, (error, written) => {
      isWriting = false
      block = block.subarray(error === null ? written : 0)
      if (error === null && (block.length > 0 || waitingChars >= FLUSH_CHARS)) flush()
      else if (block.length > 0 || waiting.length > 0) flushLater()
    })
  }
  return {
    write: (line) => {
      if (waitingChars + line.length > MAX_WAITING_CHARS) {
        dropped += 1
        return
      }
      waiting.push(line)
      waitingChars += line.length
      if (waitingChars >= FLUSH_CHARS) flush()
      else flushLater()
    },
    flushAtExit: () => {
      try {
        // Node.js lets a write that is under way end before the process does.
        if (isWriting) block = new Uint8Array()
        takeBlock()
        while (block.length > 0) {
          block = block.subarray(writeSync(target.fd, block))
          takeBlock()
        }
      } catch {
        // What cannot be written now is lost: waiting for room would keep the process from ending.
      }
    },
    droppedLines: () => dropped,
  }
}

/** A descriptor whose writes fail with EAGAIN where they would block. */
interface NonBlocking {
  readonly fd: number
  /** Keeps the descriptor open, where a stream owns it. */
  readonly owner?: Socket
}

/**
 * Opens a terminal or pipe a second time, without blocking: a terminal that is stopped with Ctrl+S, and a reader that stalls, would hold
 * up a write for ever, and with it the end of the process. The flag would also count for other programs that have the same descriptor,
 * so it is set there only for a pipe or socket that cannot be opened again. Regular files do not block.
 */
function openNonBlocking(fd: number): NonBlocking {
  const stat = fstatSync(fd)
  if (stat.isFile() || process.platform === 'win32') return { fd }
  const isTerminal = isatty(fd)
  const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY
  for (const path of [`/proc/self/fd/${fd}`, ...(isTerminal ? ['/dev/tty'] : [])]) {
    try {
      return { fd: openSync(path, flags) }
    } catch {
      // A socket, a system without /proc, or a descriptor that another user has opened.
    }
  }
  return stat.isFIFO() || stat.isSocket()
    ? { fd, owner: new Socket({ fd, readable: false }).unref() }
    : { fd }
}
