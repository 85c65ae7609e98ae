import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { isatty } from 'node:tty'

/** Writes log lines to a file descriptor and never blocks the caller. */
export interface LineWriter {
  /** Queues a line, which must end with a line feed. Drops and counts the line if the queue is full. */
  readonly write: (line: string) => void
  /** Writes the queued lines when the process exits, as far as the descriptor accepts them without blocking. */
  readonly flushAtExit: () => void
  readonly droppedLines: () => number
}

/**
 * The number of waiting characters at which lines are written. Fewer characters wait for at most `FLUSH_MS`. One write per batch would cost
 * a fifteenth of the time of a batch.
 */
const FLUSH_CHARS = 12_288
const FLUSH_MS = 250
/** Maximum number of characters that wait while the descriptor accepts no data, for example on a full disk. */
const MAX_WAITING_CHARS = 1_048_576

/**
 * Creates a writer that retries failed writes every 250 ms. `onRecovered` receives the number of lines that were dropped since its last
 * call.
 */
export function createLineWriter(fd: number, onRecovered: (lines: number) => void): LineWriter {
  const target = openNonBlocking(fd)
  let waiting: string[] = []
  let waitingChars = 0
  /** The bytes that are being written, or that wait for a retry after a failed write. Empty if there are none. */
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
        // Node.js finishes a write in progress before the process exits, so its bytes are not written again.
        if (isWriting) block = new Uint8Array()
        takeBlock()
        while (block.length > 0) {
          block = block.subarray(writeSync(target.fd, block))
          takeBlock()
        }
      } catch {
        // The remaining lines are lost. Waiting for the descriptor could keep the process from exiting.
      }
    },
    droppedLines: () => dropped,
  }
}

/** A descriptor for the log. Where the system allows it, a write that would block fails with EAGAIN instead. */
interface NonBlocking {
  readonly fd: number
  /**
   * The stream that owns the descriptor, if there is one. The reference keeps the stream from being collected and the descriptor from
   * closing.
   */
  readonly owner?: Socket
}

/**
 * Opens a terminal or pipe a second time, in non-blocking mode. Otherwise a write to a terminal that was stopped with Ctrl+S, or to a pipe
 * that nobody reads, would block forever and keep the process from exiting. A pipe or socket that cannot be opened again gets the
 * non-blocking flag on the inherited descriptor, which other programs may share. Regular files do not block.
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
      // The descriptor is a socket or belongs to another user, or the system has no /proc.
    }
  }
  return stat.isFIFO() || stat.isSocket()
    ? { fd, owner: new Socket({ fd, readable: false }).unref() }
    : { fd }
}
