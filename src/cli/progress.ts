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
  /** What is counted, in the plural. Default `parts`. */
  readonly unit?: string
  /** Parts that were there before: they count, and say nothing of the rate. Default 0. */
  readonly before?: number
  /**
   * For work whose parts take long: the rate is always shown, with what this gives, and without a terminal there is a line with it
   * at this interval, ms. Default: what it waits for is shown after a second without a part.
   */
  readonly steady?: { readonly detail: () => string; readonly everyMs: number }
}

const BAR_WIDTH = 24
const TICK_MS = 1_000

/** Shows the progress of a reply: a bar that is redrawn in place, or plain lines without a terminal. */
export class Progress {
  private readonly options: ProgressOptions
  private readonly startMs: number
  private readonly ticks: NodeJS.Timeout
  private lastMs: number
  private saidMs: number
  private done = 0
  private isStopped = false

  constructor(options: ProgressOptions) {
    this.options = options
    this.startMs = this.lastMs = this.saidMs = options.nowMs()
    this.done = options.before ?? 0
    this.ticks = setInterval(() => this.tick(), TICK_MS)
    this.draw()
  }

  /** Counts a part, or several; `line` is printed above the bar. */
  advance(line: string | undefined, count = 1): void {
    this.done += count
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
    const { status, isTerminal, steady, nowMs } = this.options
    if (isTerminal) this.draw()
    else if (steady !== undefined) {
      if (nowMs() - this.saidMs < steady.everyMs) return
      this.saidMs = nowMs()
      status.write(`${this.pace()}\n`)
    } else if (this.waitedSeconds() >= 1) status.write(`${this.waiting()}\n`)
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
    const isWaiting = this.options.steady === undefined && this.waitedSeconds() >= 1
    const text = isWaiting ? this.waiting() : this.pace()
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
    const { total, nowMs, before = 0, steady } = this.options
    const rate = ((this.done - before) / Math.max(nowMs() - this.startMs, 1)) * 1_000
    const left =
      total === undefined || rate === 0 ? undefined : Math.ceil(Math.max(total - this.done, 0) / rate)
    return [
      this.count(),
      ...(steady === undefined ? [] : [steady.detail()]),
      `${rate.toFixed(1)}/s`,
      ...(left === undefined ? [] : [`${left} s left`]),
    ].join(', ')
  }

  private waiting(): string {
    return `waiting for the reply: ${this.waitedSeconds()} s, ${this.count()} so far`
  }

  private count(): string {
    const { total, unit = 'parts' } = this.options
    return total === undefined ? `${this.done} ${unit}` : `${this.done} of ${total} ${unit}`
  }

  private waitedSeconds(): number {
    return Math.floor((this.options.nowMs() - this.lastMs) / 1_000)
  }
}
