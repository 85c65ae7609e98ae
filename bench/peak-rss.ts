import { readFileSync, writeFileSync } from 'node:fs'
import { platform } from 'node:os'

/** Returns the largest resident size of this process in bytes: on Linux since `resetPeakRss`, elsewhere since the start. */
export function peakRss(): number {
  if (platform() !== 'linux') return process.resourceUsage().maxRSS * 1024
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return Number(kib) * 1024
}

/** Resets the peak of the resident memory to its present size on Linux (see `clear_refs` in proc(5)). Does nothing on other systems. */
export function resetPeakRss(): void {
  if (platform() === 'linux') writeFileSync('/proc/self/clear_refs', '5')
}
