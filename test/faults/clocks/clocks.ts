import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import type { Random } from '../../../src/sandbox/random.ts'
import { disturb, type Disturbance } from '../disturb.ts'

/** The environment variable with the path of the file from which `preload.ts` reads the clock offset. */
export const clockVariable = 'MARKBRIDGE_TEST_CLOCK'

/** The ways in which a process gets a clock that can be stepped. */
export type ClockKind =
  /** A module that is loaded into the program replaces `Date`. */
  | 'injected'
  /** libfaketime (Debian: `faketime`) intercepts the calls that read the time of the operating system. */
  | 'system'

/** The start options of a process whose wall clock is off by the offset in `file`. */
export interface ClockSettings {
  readonly imports: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

const libraries = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib64/faketime/libfaketimeMT.so.1',
  '/usr/lib/faketime/libfaketimeMT.so.1',
]

/**
 * Returns why the clock of the operating system cannot be stepped here, or `undefined` if it can. Prints the reason once on standard error.
 */
export function missingSystemClock(): string | undefined {
  if (libraries.some(existsSync)) return undefined
  const reason = 'libfaketime is not installed: apt-get install faketime'
  console.warn(`SKIPPED: steps of the operating system's clock (${reason}).`)
  return reason
}

/** Returns the start options of a process with a clock of this kind. */
export function clockSettings(kind: ClockKind, file: string): ClockSettings {
  if (kind === 'injected') {
    return {
      imports: [fileURLToPath(new URL('preload.ts', import.meta.url))],
      env: { [clockVariable]: file },
    }
  }
  const env = {
    LD_PRELOAD: libraries.find(existsSync) ?? '',
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    FAKETIME_NO_CACHE: '1',
  }
  return { imports: [], env }
}

/** Steps the clock of all processes that read `file` to this offset from the true time, in seconds. */
export function setClock(file: string, offsetSeconds: number): void {
  const sign = offsetSeconds < 0 ? '-' : '+'
  // The file is replaced in one step, because readers must never see half of it.
  writeFileSync(`${file}.new`, `${sign}${Math.abs(offsetSeconds)}\n`)
  renameSync(`${file}.new`, file)
}

const MAX_HOURS = 6
/**
 * TRUE_SHARE is the share of steps back to the true time. SMALL_SHARE is the share of the other steps that set the clock to at most
 * MAX_SMALL_SECONDS from the true time.
 */
const SMALL_SHARE = 0.3
const TRUE_SHARE = 0.2
const MAX_SMALL_SECONDS = 6
const MAX_GAP_MS = 1_500

/** Steps the clocks behind `files`, one at a time, until `stop` is called. Then all clocks show the true time again. */
export function startClockSteps(random: Random, files: readonly string[]): Disturbance {
  const steps = disturb(
    () => 1 + random.below(MAX_GAP_MS),
    () => {
      const file = files[random.below(files.length)]
      if (file === undefined) return false
      setClock(file, drawOffset(random))
      return true
    },
  )
  return {
    ...steps,
    stop: async () => {
      await steps.stop()
      for (const file of files) setClock(file, 0)
    },
  }
}

/** Draws an offset in whole seconds, ahead or behind. */
function drawOffset(random: Random): number {
  if (random.chance(TRUE_SHARE)) return 0
  const most = random.chance(SMALL_SHARE) ? MAX_SMALL_SECONDS : MAX_HOURS * 3_600
  return random.below(2 * most + 1) - most
}
