import { clearLine, cursorTo } from 'node:readline'
import type { Writable } from 'node:stream'

export interface ProgressOptions {
  /** Output of the lines. */
  readonly output: Writable
  /** Output of the bar on a terminal, otherwise of a line for every second of waiting. */
  readonly status: Writable & { readonly columns?: number }
  /** True if lines can be erased. */
  readonly isTerminal: boolean
  /** Undefined if it is not known. */
  readonly total: number | undefined
  readonly nowMs: () => number
}

const BAR_WIDTH = 24
const TICK_MS = 1_000

/** Shows the progress of a reply: a bar that is redrawn in place, or plain lines without a terminal. */
export class Progress {
  private readonly options: ProgressOptions
  private readonly startMs: number
  private readonly ticks: NodeJS.Timeout
  private lastMs: number
  private done = 0
  private isStopped = false

  constructor(options: ProgressOptions) {
    this.options = options
    this.startMs = this.lastMs = options.nowMs()
    this.ticks = setInterval(() => this.tick(), TICK_MS)
    this.draw()
  }

  /** Counts a part; `line` is printed above the bar. */
  advance(line: string | undefined): void {
    this.done += 1
    this.lastMs = this.options.nowMs()
    this.erase()
    if (line !== undefined) this.options.output.write(`${line}\n`)
    this.draw()
  }

  /** Removes the bar. */
  stop(): void {
    if (this.isStopped) return
    this.isStopped = true
    clearInterval(this.ticks)
    this.erase()
  }

  private tick(): void {
    const { status, isTerminal } = this.options
    if (isTerminal) this.draw()
    else if (this.waitedSeconds() >= 1) status.write(`${this.waiting()}\n`)
  }

  private erase(): void {
    const { status, isTerminal } = this.options
    if (!isTerminal) return
    cursorTo(status, 0)
    clearLine(status, 0)
  }

  private draw(): void {
    const { status, total, isTerminal } = this.options
    if (!isTerminal) return
    this.erase()
    const bar = total === undefined || total === 0 ? '' : `${this.bar(total)} `
    const text = this.waitedSeconds() >= 1 ? this.waiting() : this.pace()
    // One column is left: a full line would wrap, and could not be erased. Some terminals do not know their width.
    const width = (status.columns ?? 0) > 1 ? (status.columns ?? 0) : 80
    status.write(`${bar}${text}`.slice(0, width - 1))
  }

  private bar(total: number): string {
    const filled = Math.round((Math.min(this.done, total) / total) * BAR_WIDTH)
    return `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`
  }

  /** `12 of 30 parts, 5.2/s, 4 s left` */
  private pace(): string {
    const { total, nowMs } = this.options
    const rate = (this.done / Math.max(nowMs() - this.startMs, 1)) * 1_000
    const left =
      total === undefined || rate === 0 ? undefined : Math.ceil(Math.max(total - this.done, 0) / rate)
    return [this.count(), `${rate.toFixed(1)}/s`, ...(left === undefined ? [] : [`${left} s left`])].join(
      ', ',
    )
  }

  private waiting(): string {
    return `waiting for the reply: ${this.waitedSeconds()} s, ${this.count()} so far`
  }

  private count(): string {
    const { total } = this.options
    return total === undefined ? `${this.done} parts` : `${this.done} of ${total} parts`
  }

  private waitedSeconds(): number {
    return Math.floor((this.options.nowMs() - this.lastMs) / 1_000)
  }
}
