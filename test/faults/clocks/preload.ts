import { readFileSync } from 'node:fs'

import { clockVariable } from './clocks.ts'

// This module is loaded with --import into the built program. It shifts the program's wall clock by the offset in a file, which may change
// at any time. Monotonic time (performance.now, process.hrtime, timers) is unaffected.

const path = process.env[clockVariable] ?? ''
const POLL_MS = 10
const Original = Date
let offsetMs = 0

class SteppedDate extends Original {
  constructor(...parameters: unknown[]) {
    if (parameters.length === 0) super(SteppedDate.now())
    else super(...(parameters as [number]))
  }

  static override now(): number {
    return Original.now() + offsetMs
  }
}

function readOffset(): void {
  try {
    offsetMs = Number(readFileSync(path, 'latin1')) * 1_000
  } catch {
    // The file is gone because the run is over.
  }
}

if (path !== '') {
  readOffset()
  setInterval(readOffset, POLL_MS).unref()
  globalThis.Date = SteppedDate as unknown as DateConstructor
}
